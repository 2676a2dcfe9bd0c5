"""The mechanisms: noise, selection, above-threshold, interior points. Each with its proof note."""
