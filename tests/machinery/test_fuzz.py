"""The fuzzer knows every public name, repeats a call by its number, and notices whatever it looks for."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import time
import warnings

import numpy as np
import pytest

import fastdp
from fastdp.support.shown import shown

from . import calls, fuzz, races, surface
from .hostile import MARK, everything_hostile

REFUSED = {  # valid calls that are refused, as that is what they are about
    "ApproxDP.dp_event", "ApproxDP.to_renyi", "ApproxDP.to_zcdp", "GumbelMax.winner", "GumbelMax.winners",
    "Renyi.dp_event", "Renyi.group", "Renyi.to_zcdp", "SyntheticDistribution.dp_event", "learning.Chosen.predict",
    "sets.Projected.net", "sets.Projected.net_shape", "sets.Projected.net_size", "optimizing.ExcessBounds.__hash__",
    "Bins.dp_event", "losses.Gradient.check_value", "losses.Gradient.declared_norm", "losses.Softmax.check_value",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(calls.CALLS))
def test_every_public_name_has_a_valid_call(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function, arguments, keywords = calls.CALLS[name](np.random.default_rng(1))
        if name in REFUSED:
            with pytest.raises((ValueError, NotImplementedError, TypeError)):
                function(*arguments, **keywords)
        else:
            function(*arguments, **keywords)


def test_all_that_is_public_is_called_or_left_out_with_a_reason():
    public = {name for name in fastdp.__all__ if name[0] != "_" and not is_warning(getattr(fastdp, name))}
    known = {name.removesuffix(" properties") for name in calls.CALLS}
    assert {name for name in public if name not in known} == {"warmup", "Partition", "Plan"}
    assert all(reason for reason in surface.LEFT_OUT.values())
    assert len(calls.CALLS) > 500
    assert {"laplace", "mwem", "GumbelMax", "learn_box"} < calls.CHARGED


def is_warning(thing):
    return inspect.isclass(thing) and issubclass(thing, Exception)


def test_a_new_name_without_an_entry_fails():
    def release(values, wobble, *, epsilon):
        return values

    with pytest.raises(KeyError, match="wobble"):
        calls._function("release", release)(np.random.default_rng(1))


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")  # of numpy
def test_a_call_is_repeated_by_its_number():
    for i in (3, 77, 1234):
        one, again = (fuzz._Hostile(fuzz.name_of(5, i), (5 << 40) + i) for _ in range(2))
        assert (one.name, one.replaced, one.strict) == (again.name, again.replaced, again.strict)
    assert len({fuzz.name_of(5, i) for i in range(3000)}) > 450


def test_everything_hostile_can_be_shown():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numpy, about its matrix
        values = list(everything_hostile())
    for value in values:
        text = shown(value)
        assert len(text) < 400
        assert str(MARK) not in text or type(value) is int


# --- mutants: each breaks one invariant, and is found


def type_error(values):
    json.dumps(values)


def without_a_name(values):
    raise ValueError("cannot convert")


def prints_data(values):
    raise ValueError(f"values={[MARK]!r}: must be numbers")


def at_length(values):
    raise ValueError("values: " + "x" * 1000)


def changes_input(values):
    values += 1


def seterr(values):
    np.seterr(over="raise")


def environment(values):
    os.environ["FASTDP_MUTANT"] = "1"


def out_of_memory(values):
    raise MemoryError


MUTANTS = {
    type_error: "TypeError",
    without_a_name: "does not begin with a name",
    prints_data: "prints data",
    at_length: "characters long",
    changes_input: "an input was changed",
    seterr: "the process was changed: numpy's error state",
    environment: "the process was changed: environment",
    out_of_memory: "out of memory",
}


def mutated(monkeypatch, mutant, name="mutant"):
    made = {name: lambda rng: (mutant, [], {"values": np.arange(3.0)})}
    monkeypatch.setattr(calls, "CALLS", made)
    call = fuzz._Hostile(name, 1)
    call.keywords = {"values": np.arange(3.0)}
    call.strict = False
    return call


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_mutants_are_found(monkeypatch, mutant):
    monkeypatch.setattr(os, "environ", os.environ.copy())
    call = mutated(monkeypatch, mutant)
    with np.errstate(), pytest.raises(fuzz.Found, match=MUTANTS[mutant]):
        call.make()


def test_what_is_no_mutant_is_not_found(monkeypatch):
    assert mutated(monkeypatch, lambda values: values.sum()).make() == "returned"

    def refuses(values):
        raise ValueError("values: type ndarray: must be a list")

    assert mutated(monkeypatch, refuses).make() == "ValueError"


def test_a_charge_without_a_draw_is_found(monkeypatch):
    def charges(values, budget, rng):
        fastdp.laplace(3, sensitivity=1, epsilon=1.0, budget=budget)
        raise ValueError("values: must be others")

    monkeypatch.setattr(calls, "CHARGED", {"mutant"})
    call = mutated(monkeypatch, charges)
    call._charge(1)
    with pytest.raises(fuzz.Found, match="without a draw"):
        call.make()


CHILD = """
import os, pathlib, sys, time
import numpy as np
from tests.machinery import calls, fuzz
def mutant(): {}
valid = calls.CALLS["PureDP"]
calls.CALLS.clear()
calls.CALLS.update(mutant=lambda rng: (mutant, [], {{}}), valid=valid)
sys.exit(fuzz.main(sys.argv[1:]))
"""


class Clock:
    """Years pass as long as the process lives that has written its number; else it is the clock's time."""

    def __init__(self, hangs):
        self.hangs, self.passed = hangs, 0

    def monotonic(self):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
            os.kill(int(self.hangs.read_text()), 0)
            self.passed += 10**8
        return time.monotonic() + self.passed

    def sleep(self, seconds):
        time.sleep(seconds)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("os.abort()", "ended the process: -6"),
        (
            "pathlib.Path(HANGS).write_text(str(os.getpid())), time.sleep(10**6)",
            f"took more than {fuzz.SECONDS} s",
        ),
    ],
)
def test_crashes_and_hangs_are_found_and_the_run_goes_on(monkeypatch, tmp_path, body, message):
    hangs = tmp_path / "hangs"
    monkeypatch.setattr(fuzz, "CHILD", ["-c", CHILD.format(body.replace("HANGS", repr(str(hangs))))])
    monkeypatch.setattr(fuzz, "time", Clock(hangs))
    numbers = [i for i in range(40) if np.random.default_rng((1, i)).integers(2) == 0]  # those of the mutant
    last = numbers[1]
    outcomes, found = fuzz.run(last, 1, 1)
    assert [(each["call"], each["name"]) for each in found] == [(numbers[0], "mutant")]
    assert message in found[0]["found"]
    assert sum(outcomes.values()) == last - 1 - numbers[0]  # the calls after it; what was told before is lost with it


# --- values that change during a call


@pytest.mark.parametrize("size", [300, 40_000])
@pytest.mark.parametrize("name", ["buckets", "gumbel", "permute_and_flip", "draws", "top_k", "GumbelMax", "laplace"])
def test_values_that_change_between_passes_are_refused_or_taken_as_read(name, size):
    for dtype, values, takes in (
        (np.float64, races.FLOATS, races.ANY | races.OF_FLOATS),
        (np.int64, races.INTEGERS, races.ANY | races.OF_INTEGERS),
    ):
        array = np.zeros(size, dtype)
        outcomes, found = races.race(takes[name], array, np.array(values, dtype), 0.1, races.rewritten)
        assert found == []
        assert outcomes["returned"]
