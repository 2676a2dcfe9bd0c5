"""Whether the time of a call depends on the values of the records: `python -m tests.machinery.timing`.

What is compared stands in bench/audits/timing.py. It measures the wall clock, so it is no part of `make test`.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import fastdp
from fastdp.bench.audits.timing import THRESHOLD, cases, compare


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.machinery.timing", description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    fastdp.set_num_threads(1)
    failed = False
    for name, case in cases(np.random.default_rng(options.seed)).items():
        for each in case.classes:
            case.call(each)
        runs = min(options.runs, case.runs)
        t, longer = compare(case, runs, options.seed)
        failed |= case.independent and abs(t) > THRESHOLD
        print(f"{name:33} t = {t:6.1f}, {100 * longer:5.1f} % longer, {runs:,} runs", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
