"""Public classes state the path by which users import them; pickles and tracebacks name it."""

import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
import traceback

import numpy as np
import pytest

import fastdp
from fastdp.privacy import Accounted
from fastdp.support.results import Displayed, DisplayedOnOneLine

PUBLIC = [
    (path, name)
    for path in ("fastdp", "fastdp.losses", "fastdp.sets", "fastdp.privacy")
    for module in (fastdp if path == "fastdp" else getattr(fastdp, path.partition(".")[2]),)
    for name in getattr(module, "__all__", None) or vars(module)
    if inspect.isclass(thing := getattr(module, name)) and thing.__module__.startswith("fastdp") and name[0] != "_"
]
RESULTS = {
    "fastdp.answering": "Answer Estimate FittedDistribution Marginals MarginalsRelease Query Ratio",
    "fastdp.audit": "Finding LowerBound Replay ReplayedRead",
    "fastdp.learning": "Chosen Hypothesis LearnedBox LearnedConjunction LearnedDecisionList LearnedTree",
    "fastdp.optimizing": "Descent ExcessBounds LeastSquares PrivateChoice PrivateDescent PrivateMinimum VectorRelease",
    "fastdp.privacy": "Release Releases Removal",
    "fastdp.records": "Engine PackedRows Subset",
    "fastdp.statistics": "ColumnSummary Counts Description LabelCounts LabelSums Number",
}
FEW = {
    "fastdp": [
        fastdp.PureDP(0.5),
        fastdp.ApproxDP(1.0, 1e-6),
        fastdp.ZCDP(0.5),
        fastdp.BoundedRange(0.25),
        fastdp.GaussianDP(0.5),
        fastdp.PureDP(0.5) & fastdp.ZCDP(0.1),
        fastdp.Randomness(),
        fastdp.Domain(a=3, b=2),
        fastdp.Bins([0.0, 1.0]),
        fastdp.Conjunction({"a": 1}),
        fastdp.Range("a", 0, 1),
        fastdp.DomainError("x"),
        fastdp.BudgetExceeded("x"),
        fastdp.AccuracyWarning("x"),
    ],
    "fastdp.losses": [fastdp.losses.Logistic(), fastdp.losses.Huber(), fastdp.losses.SquaredDistance()],
    "fastdp.sets": [fastdp.sets.Box(-1.0, 1.0), fastdp.sets.Ball(1.0), fastdp.sets.Simplex()],
}


@pytest.mark.parametrize(("path", "name"), PUBLIC)
def test_public_classes_say_their_public_path(path, name):
    kind = getattr(fastdp if path == "fastdp" else getattr(fastdp, path.partition(".")[2]), name)
    shorter = "fastdp" if path == "fastdp.privacy" and name in fastdp.__all__ else path
    assert (kind.__module__, kind.__qualname__) == (shorter, name)
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert f"{shorter}\n".encode() in pickle.dumps(kind, 0)


@pytest.mark.parametrize(("path", "name"), [(path, name) for path in RESULTS for name in RESULTS[path].split()])
def test_classes_of_results_say_their_package(path, name):
    package = importlib.import_module(path)
    kind = getattr(package, name)
    assert (kind.__module__, kind.__qualname__) == (path, name)
    assert name in dir(package)
    assert pickle.loads(pickle.dumps(kind)) is kind


def kinds_below(base):
    for kind in base.__subclasses__():
        yield kind
        yield from kinds_below(kind)


def test_no_result_names_a_file():
    for package in map(importlib.import_module, RESULTS):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    found = {kind for base in (Displayed, DisplayedOnOneLine, Accounted) for kind in kinds_below(base)}
    ours = {kind for kind in found if kind.__module__.partition(".")[0] == "fastdp"}
    assert len(ours) > 15
    adapters = ("fastdp.sklearn", "fastdp.connect")
    named = {kind for kind in ours if not kind.__module__.startswith(adapters)}
    assert {kind for kind in named if kind.__module__ not in ("fastdp", *RESULTS)} == set()


def test_packages_import_their_modules_when_asked():
    packages = [path for path in RESULTS if path != "fastdp.privacy"]
    code = f"import sys, importlib; [importlib.import_module(p) for p in {packages}]; print('numpy' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
    with pytest.raises(AttributeError, match=r"^module 'fastdp.learning' has no attribute 'Wheel'$"):
        importlib.import_module("fastdp.learning").Wheel  # noqa: B018


def released():
    """What functions give back, one of each package."""
    X, bits = np.array([[0.5], [0.25], [-0.5]] * 50), np.array([[0, 1], [1, 1]] * 5000)
    over = fastdp.sets.Box(-1, 1)
    with fastdp.Budget(epsilon=2.0) as budget:
        yield fastdp.exponential_erm(X, loss=fastdp.losses.SquaredDistance(x_norm=1), over=over, epsilon=1.0)
        yield fastdp.learn_conjunction(bits, bits[:, 0], epsilon=1.0)
    yield budget.releases[0]
    yield fastdp.removal(1.0, one_signed=True)
    yield fastdp.marginals(fastdp.Domain(a=3, b=2), 1)
    yield fastdp.pack(bits)


def test_results_travel_under_the_public_path():
    for result in released():
        path = type(result).__module__
        assert type(result).__name__ in RESULTS[path].split()
        packed = pickle.dumps(result, 0)
        assert f"c{path}\n{type(result).__name__}\n".encode() in packed
        assert type(pickle.loads(packed)) is type(result)


def test_there_are_as_many_as_ever():
    assert len(PUBLIC) > 40


@pytest.mark.parametrize("name", ["fastdp.sklearn", "fastdp.connect.mbi", "fastdp.capi"])
def test_adapters_likewise(name):
    module = pytest.importorskip(name)
    for each in module.__all__:
        thing = getattr(module, each)
        if inspect.isclass(thing):
            assert thing.__module__ == name
            assert getattr(importlib.import_module(thing.__module__), thing.__name__) is thing


@pytest.mark.parametrize("path", FEW)
def test_pickles_of_values_name_the_public_path(path):
    for value in FEW[path]:
        packed = pickle.dumps(value, 0)
        assert f"c{path}\n{type(value).__name__}\n".encode() in packed
        again = pickle.loads(packed)
        assert type(again) is type(value)
        assert repr(again) == repr(value)


def test_tracebacks_name_the_public_path():
    with pytest.raises(fastdp.DomainError) as caught:
        fastdp.laplace([float("nan")], sensitivity=1, epsilon=1)
    assert traceback.format_exception_only(caught.value)[0].startswith("fastdp.DomainError: values: ")


def test_what_a_pickle_names_is_found_in_a_new_process():
    """Without an import of fastdp, and without another module of ours than the one that is asked for."""
    packed = pickle.dumps([fastdp.losses.Hinge(), fastdp.sets.Ball(2.0), fastdp.PureDP(0.5)])
    code = f"import pickle; print(pickle.loads({packed!r}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == repr([fastdp.losses.Hinge(), fastdp.sets.Ball(2.0), fastdp.PureDP(0.5)])


def test_modules_are_imported_by_their_public_path():
    code = "from fastdp.losses import Hinge; import fastdp.sets; print(Hinge, fastdp.sets.Ball)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "<class 'fastdp.losses.Hinge'> <class 'fastdp.sets.Ball'>"
    assert isinstance(fastdp.sets.Ball(1.0), fastdp.sets.ConvexSet)
