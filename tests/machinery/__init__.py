"""Attacks that run for minutes, by `make fuzz`, `make interrupts`, `make forks`: not part of `make test`."""
