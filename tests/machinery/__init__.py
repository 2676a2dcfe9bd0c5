"""Attacks that run for minutes, by `make fuzz`, `interrupts`, `forks`, `sanitize`: not part of `make test`."""
