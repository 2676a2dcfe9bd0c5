"""Other libraries at work, each in a process and an environment of its own: one file per library, with its TASKS.

A task is `make(n, **parameters)`, which prepares the work on n elements and returns a call that does it once. These
files run without fastdp: they import numpy, `inputs` and, inside functions, their library. `protocol` runs them;
`fastdp.bench.harness.environments` names what they need and where it is installed.
"""
