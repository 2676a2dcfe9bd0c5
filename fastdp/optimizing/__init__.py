"""Minimise a loss over a convex set, privately: descent, the exponential mechanism, second moments."""
