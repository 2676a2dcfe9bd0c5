"""Adapters to other libraries: one file each, imported on demand. They import the rooms, never the reverse."""
