"""The registry as parameters of tests, and the sizes that they are run at."""

import pytest

from fastdp.bench.cases.curves import curves
from fastdp.bench.cases.latency import latencies
from fastdp.bench.cases.registry import cases

CASES = [pytest.param(case, id=case.name) for case in cases()]
CURVES = [pytest.param(curve, id=curve.name) for curve in curves()]
LATENCIES = [pytest.param(case, id=case.name) for case in latencies()]
TINY, DRAWS = 100, 20_000
