"""The registry of benchmark cases: what is measured, beside whom, and with which target."""
