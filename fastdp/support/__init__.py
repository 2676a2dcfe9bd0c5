"""What every room stands on: rounding, checks, errors, columns, threads, progress, results."""
