"""Accuracy, measured: one registry of tasks on tables that pip brings, beside the registry of speed in `cases`.

A file for each topic (quantiles, tables, optimizing, ...), a small function for each task; `registry.py` says what a
task is, `datasets.py` loads the tables, `fastdp bench --accuracy` runs them.
"""
