"""The process that measures: pytest over `test_speed.py`, with one line of JSON on standard output per event.

It is a process of its own so that the bar that its parent draws takes no time from it, so that `--avx2` can give it
another CPU, and so that a crash costs one row. Run as `python -m fastdp.bench.harness.worker [--quick] [--threads=1,2]
case ...`; a case is also the point of a curve, a latency, or "limits".
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import IO, Any

import pytest

import fastdp

from ...support import machine


class Reporter:
    """A pytest plugin that reports to the parent what starts and what came out."""

    def __init__(self, events: IO[str], names: list[str], quick: bool, threads: tuple[int, ...]) -> None:
        self.events, self.names, self.quick, self.threads = events, set(names), quick, threads

    def report(self, **event: Any) -> None:
        print(json.dumps(event), file=self.events, flush=True)

    def pytest_configure(self, config: pytest.Config) -> None:
        config.option.fastdp_quick = self.quick
        config.option.fastdp_threads = self.threads

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self._case(item.nodeid) in self.names]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.report(start=self._case(nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            lines = [line for line in report.longreprtext.splitlines() if line.startswith("E ")]
            self.report(failed=self._case(report.nodeid), why=lines[0][1:].strip() if lines else report.longreprtext)
        elif report.when == "call":
            self.report(measured=dict(report.user_properties)["measured"])

    @staticmethod
    def _case(nodeid: str) -> str:
        return nodeid.partition("[")[2].removesuffix("]")


def main(arguments: list[str]) -> int:
    quick = "--quick" in arguments
    given = [argument.removeprefix("--threads=") for argument in arguments if argument.startswith("--threads=")]
    threads = tuple(int(number) for number in given[-1].split(",")) if given else ()
    names = [argument for argument in arguments if not argument.startswith("--")]
    events = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever pytest or another library prints goes to standard error
    here = Path(__file__).parents[1]
    reporter = Reporter(events, names, quick, threads)
    reporter.report(machine={**machine.describe(), "threads": fastdp.get_num_threads()}, source=fastdp.__file__)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the host's plugins and options are not ours to measure with
    for name in [name for name in os.environ if name.startswith(("PYTEST_ADDOPTS", "PYTEST_XDIST"))]:
        del os.environ[name]
    options = ["--noconftest", f"--rootdir={here}", "-c", os.devnull, "-q", "-s"]
    options += ["-p", "no:cacheprovider", "-p", "no:warnings", "-p", "pytest_benchmark.plugin"]
    return int(pytest.main([*options, "--benchmark-quiet", str(here / "test_speed.py")], plugins=[reporter]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
