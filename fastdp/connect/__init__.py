"""Adapters to other libraries, one a file, each imported on demand."""
