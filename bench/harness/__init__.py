"""How cases are run: processes, timers, limits of the machine, instruction counts, comparisons."""
