"""Every public mechanism and every kernel that others call has a case."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fastdp
from fastdp.bench.cases import latency
from fastdp.bench.cases.registry import (
    cases,
)
from tests.bench.params import TINY

COVERED = {  # what reads records, or draws noise
    "AboveThreshold": "above-threshold",
    "Bins": "bins",
    "Budget": "laplace-in-budget",
    "ContinualCounter": "continual-step",
    "GumbelMax": "gumbel-max",
    "NumericSparse": "numeric-sparse",
    "PrivateMultiplicativeWeights": "pmw-answer",
    "Randomness": "words",
    "SparseVector": "sparse-vector",
    "SyntheticDistribution": "answer-slice",
    "error": "error",
    "exponential_erm": "exact-deviation",
    "exponential_mechanism": "select-float64-1e6",
    "gaussian": "gaussian-int64-100",
    "interior_point": "interior-point-int64",
    "laplace": "laplace-int64-100-new",
    "learn_box": "box-exponential",
    "learn_conjunction": "peel-10",
    "learn_decision_list": "decision-list",
    "learn_from_class": "concepts",
    "learn_tree": "tree",
    "median": "small-median-10",
    "limit_rows": "limit-rows",
    "mwem": "mwem-small",
    "noisy_least_squares": "least-squares",
    "noisy_projected_gradient_descent": "descent-squared-small",
    "pack": "pack",
    "permute_and_flip": "permute-and-flip",
    "private_erm": "private-erm",
    "projected_gradient_descent": "descent-plain",
    "quantile": "quantile",
    "quantiles": "quantiles",
    "release_marginals": "release-pairs",
    "release_ranges": "ranges",
    "top_k": "top-k",
    "vector_mean": "vector-mean-gaussian",
    "vector_sum": "vector-sum-gaussian",
}
NOT_COVERED = {  # why not
    "statements about guarantees, of public numbers": {
        *("AllOf", "ApproxDP", "BoundedRange", "GaussianDP", "PureDP", "Renyi", "ZCDP"),
        *("compose", "share", "peeling_eta", "removal", "removal_eta"),  # "compose-mixed" has one
    },
    "what describes a question": {
        *("Combination", "Conjunction", "Domain", "Linear", "Mask", "Predicate", "Product", "Range", "Scaled"),
        "marginals",
    },
    "plans, of public numbers, before anything is read": {"Plan", "PlannedRelease", "plan_releases", "plan_synthesis"},
    "measured in parts: tree-fit, tree-sample, and what the accuracy rows of synthetic tables take": {"synthesize"},
    "what runs the mechanisms of others": {"BestRun", "Partition", "best_of", "partition"},
    "a pass of numpy's": {"per_person"},
    "warnings and errors": {"AccuracyWarning", "BudgetExceeded", "DomainError", "LedgerError", "PrivacyWarning"},
    "settings": {"get_num_threads", "set_num_threads", "warmup"},
    "for comparison only": {"nonprivate_excess_risk", "nonprivate_minimum"},
}


def test_every_public_mechanism_is_said_to_have_a_case() -> None:
    public = {name for name in fastdp.__all__ if callable(getattr(fastdp, name))}
    excluded = [name for names in NOT_COVERED.values() for name in names]
    assert sorted((*COVERED, *excluded)) == sorted(public)


def _codes(thing: Any) -> set[Any]:
    parts = vars(thing).values() if isinstance(thing, type) else [thing]
    return {part.__code__ for part in parts if hasattr(part, "__code__")}


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")
@pytest.mark.parametrize("name", COVERED)
def test_the_case_of_a_mechanism_calls_it(name: str) -> None:
    case = next(case for case in (*cases(), *latency.latencies()) if case.name == COVERED[name])
    called: set[Any] = set()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: called.add(frame.f_code))
    try:
        case.ours.make(TINY)()
    finally:
        sys.setprofile(before)
    assert called & _codes(getattr(fastdp, name))


# what has no case: why not
NOT_RUN = {
    "derivatives_into": "what a Custom loss reports to its author",
    "distance": "is no call from Python: attributes of plans have the same name",
    "log_exponential": "exact.log_exponential, which is Python, has the same name",
    "sort": "is a method of lists, too",
    "multiply_cells": "only after so many updates that the weights' sum leaves 1e-20 .. 1e20",
}
# more than the tiny size, by which other kernels are chosen
LARGE = {
    "count-by-text": 20_000,
    "gaussian-float64-100": 2_000,
    "laplace-float64-100": 2_000,
    "permute-and-flip": 40_000,
    "sample-searched": 1 << 25,
    "tree-fit-wide": 10 * 64**3,
    "transform": 1 << 20,
    "answer-scattered": 1 << 14,
    "conjunction-scattered": 1 << 14,
    "release-pairs": 20_000,
    "quantiles-ties": 20_000,
    "descent-two-threads": 220_000,
    "limit-rows-far": 400_000,
    "net": 20_000,
    "least-squares": 20_000,
}
# long, and by kernels that other cases run, too
LONG = {
    "end-to-end-16",
    "compose-mixed",
    "compose-losses",
    "compose-losses-cold",
    "compose-losses-equal",
    "peel-1",
    "peel-3",
    "peel-30",
    "box-peel",
}
RUN_CASES = """
import json, sys, warnings
warnings.simplefilter("ignore")
from numba.core.dispatcher import Dispatcher
compile_for_args, ran = Dispatcher._compile_for_args, set()
def note(self, *arguments, **more):  # what Python calls for types that it has not called it for
    ran.add(self.py_func.__module__ + "." + self.py_func.__name__)
    return compile_for_args(self, *arguments, **more)
Dispatcher._compile_for_args = note
from fastdp.bench.cases.registry import cases
sizes, left_out = json.loads(sys.argv[1]), json.loads(sys.argv[2])
for case in cases():
    if case.clock == "call" and case.name not in left_out:
        for n in sorted({sizes[""], sizes.get(case.name, sizes[""])}):
            case.ours.make(n)()
print(json.dumps(sorted(ran)))
"""


def _kernels() -> dict[str, str]:
    """By name: the module of every compiled function of fastdp.kernels that others may call."""
    found = {}
    for one in pkgutil.iter_modules(importlib.import_module("fastdp.kernels").__path__):
        module = importlib.import_module(f"fastdp.kernels.{one.name}")
        for name, thing in vars(module).items():
            if hasattr(thing, "py_func") and thing.py_func.__module__ == module.__name__ and not name.startswith("_"):
                assert name not in found
                found[name] = module.__name__
    return found


def _named_outside() -> set[str]:
    """What every module of fastdp that imports kernels, is none, nor about them all, nor for C, imports of them, and
    its attributes."""
    root, named = Path(fastdp.__file__).parent, set()
    for path in root.rglob("*.py"):
        if path.relative_to(root).parts[0] in ("kernels", "bench", "capi", "warmup.py"):
            continue
        nodes = list(ast.walk(ast.parse(path.read_text())))
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        imported = {a.name for node in imports if "kernels" in (node.module or "") for a in node.names}
        if imported or any(alias.name == "kernels" for node in imports for alias in node.names):
            named |= imported | {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return named


def test_every_kernel_that_others_call_is_run_by_a_case() -> None:
    """In a process of its own, where nothing else has run any."""
    kernels = _kernels()
    public = _named_outside() & set(kernels)
    assert len(public) > 70
    command = [sys.executable, "-c", RUN_CASES, json.dumps(LARGE | {"": TINY}), json.dumps(sorted(LONG))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    ran = set(json.loads(done.stdout.splitlines()[-1]))
    assert sorted(name for name in public if f"{kernels[name]}.{name}" not in ran) == sorted(NOT_RUN)
