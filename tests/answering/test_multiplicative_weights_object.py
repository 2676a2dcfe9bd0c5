"""Private multiplicative weights as an object: copies, processes, threads, locks, what cannot be set."""

from __future__ import annotations

import copy
import math
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import (  # fmt: skip
    Conjunction,
    Domain,
    Mask,
    Product,
    Randomness,
    marginals,
)
from fastdp.answering.update_schedule import Variant
from fastdp.support.errors import AccuracyWarning
from tests.answering.multiplicative_weights_laws import DOMAIN, PEOPLE, QUIET, SMALL, VARIANTS, make, records, tiny

# that plain noise would guarantee more: these runs are made small to be quick
pytestmark = pytest.mark.filterwarnings(
    "ignore:PrivateMultiplicativeWeights guarantees:fastdp.support.errors.AccuracyWarning"
)


# --- one object, one process


def test_no_copies() -> None:
    run = make(PEOPLE, SMALL, max_queries=10)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps, lambda r: copy.deepcopy([r])):
        with pytest.raises(
            TypeError, match=r"^a PrivateMultiplicativeWeights does not pickle or copy: each copy could answer"
        ):
            attempt(run)


def test_a_forked_child_is_a_copy_too(run_python: Callable[..., str]) -> None:
    code = """
import os, numpy as np, fastdp
data = np.random.default_rng(0).integers(0, 3, (20_000, 1))
run = fastdp.PrivateMultiplicativeWeights(data, fastdp.Domain(a=3), epsilon=1.0, max_queries=10_000)
query = fastdp.Conjunction({"a": 1})
child = os.fork()
if not child:
    try:
        run.answer(query)
    except RuntimeError as error:
        print("refused" if "parent process" in str(error) else error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
run.answer(query)
"""
    assert run_python(code).split() == ["refused"]


def test_many_threads_get_no_more_than_one_would() -> None:
    run = make(PEOPLE, SMALL, max_queries=100)
    answered, refused = [], []

    def ask() -> None:
        for i in range(40):
            try:
                answered.append(run.answer(Conjunction({"a": i % 4, "b": i % 3})))
            except ValueError:
                refused.append(1)

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert (len(answered), len(refused), len(run.transcript)) == (100, 60, 100)


@pytest.mark.usefixtures("restored_threads")
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_seed_gives_the_same_bits_for_every_number_of_threads(variant: Variant) -> None:
    domain = Domain.binary(21)
    data = np.random.default_rng(1).random((100_000, 21)) < 0.1
    rng = np.random.default_rng(2)
    queries: list[Any] = [Conjunction({f"v{i}": 0, f"v{i + 5}": 0}) for i in range(1, 17)]
    queries += [Mask(rng.random(2**21) < 0.5), Product({"v21": 1, "v1": 0})]

    def run(seed: int) -> Any:
        made = make(data, domain, epsilon=10.0, max_queries=100, variant=variant, rng=Randomness(seed=seed))
        return made.answer_many(queries).tobytes(), made.updates, made._run.weights.probabilities().tobytes()

    results = []
    for threads in (1, 2):
        fastdp.set_num_threads(threads)
        results.append(run(4))
    assert results[0] == results[1]
    assert results[0][1] > 0
    assert run(5)[0] != results[0][0]


@pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning")
@pytest.mark.parametrize("variant", [*VARIANTS, "measured", "plain"])
def test_one_query_is_a_batch_of_one_bit_by_bit(variant: Variant) -> None:
    """Also where its test fires: for queries that hold for most of the records and few of the cells."""
    domain = Domain.binary(9)
    data = np.random.default_rng(1).random((60_000, 9)) < 0.08
    rng = np.random.default_rng(2)
    queries: list[Any] = [Conjunction({f"v{i}": 0, f"v{i + 3}": 0}) for i in range(1, 7)] * 3
    queries += [Mask(rng.random(2**9) < 0.5), Product({"v9": 1, "v1": [0, 1]}), Mask(rng.random(2**9) < 0.1)]

    def run(ask: Callable[[Any, Any], Any]) -> Any:
        made = make(data, domain, epsilon=10.0, max_queries=100, variant=variant, rng=Randomness(seed=4))
        values = [float(ask(made, query)) for query in queries]
        return values, made.transcript, made.updates, made.synthetic.probabilities().tobytes()

    single = run(lambda made, query: made.answer(query))
    assert single == run(lambda made, query: made.answer_many([query])[0])
    assert single[2] > 0 or variant == "plain"
    assert len(single[1]) == len(queries)


def test_the_divergence_is_the_definition() -> None:
    run = make(PEOPLE, SMALL, max_queries=100, rng=Randomness(seed=1))
    run.answer_many(marginals(SMALL, 2))
    true = np.bincount(PEOPLE[:, 0] * 3 + PEOPLE[:, 1], minlength=12) / len(PEOPLE)
    ours = run._run.weights.probabilities()
    right = sum(float(t) * math.log(t / o) for t, o in zip(true, ours, strict=True) if t)
    assert run.nonprivate_kl() == pytest.approx(right, abs=1e-12)
    fresh = make(PEOPLE, SMALL, max_queries=100)
    assert fresh.nonprivate_kl() == pytest.approx(math.log(12) + float((true[true > 0] * np.log(true[true > 0])).sum()))


def test_the_synthetic_distribution_stays_as_it_was() -> None:
    run = make(PEOPLE, SMALL, epsilon=5.0, max_queries=100, rng=Randomness(seed=1))
    before = run.synthetic
    share = before.answer(Conjunction({"a": 0}))
    run.answer_many(marginals(SMALL, 2))
    assert run.updates > 0
    assert before.answer(Conjunction({"a": 0})) == share == pytest.approx(0.25)
    assert run.synthetic.answer(Conjunction({"a": 0})) != share


def test_the_repr_says_what_is_guaranteed() -> None:
    run = make(PEOPLE, SMALL, max_queries=10)
    run.answer(Conjunction({"a": 1}))
    shown = repr(run)
    assert shown.startswith(
        f"PrivateMultiplicativeWeights(12 cells, n=20,000, alpha={run.alpha:.4g}, (1, 1e-06)-DP and "
    )
    assert "# 1 of 10 queries," in shown
    assert "<code>" in run._repr_html_()


def run_with_time(work: Callable[[], Any]) -> None:
    """In a thread of its own, so that a deadlock is a failure and no hanging test."""
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(1800)
    assert not thread.is_alive(), "deadlock"
    if errors:
        raise errors[0]


def test_no_lock_is_held_while_progress_is_called() -> None:
    run = make(PEOPLE, SMALL, max_queries=500, rng=Randomness(seed=1))
    query, seen, waited = Conjunction({"a": 0}), [], []
    others = [threading.Thread(target=lambda: waited.append(run.answer(query)), daemon=True) for _ in range(2)]

    def progress(done: int, total: int, what: str) -> None:
        seen.append((run.synthetic.answer(query), run.nonprivate_kl(), repr(run)))
        with pytest.raises(
            RuntimeError, match=r"^what is called while an answer is made, such as `progress`, must not"
        ):
            run.answer(query)
        if len(seen) == 1:
            for other in others:
                other.start()
        assert waited == [], "others wait for their turn"

    run_with_time(lambda: run.answer_many(marginals(SMALL, 2), progress=progress))
    assert len(seen) > 1
    for other in others:
        other.join(1800)
    assert len(waited) == 2
    assert len(run.transcript) == len(marginals(SMALL, 2)) + 2
    run_with_time(lambda: run.answer(query))


def test_no_lock_is_held_while_a_warning_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny(monkeypatch, "sharp", 1, QUIET, QUIET, 0.0, 1, 0.3)
    run = make(records((6, 0, 0)), DOMAIN, max_queries=100)
    shown: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", AccuracyWarning)
        monkeypatch.setattr(warnings, "showwarning", lambda *args, **more: shown.append(run.synthetic.probabilities()))
        run_with_time(lambda: run.answer(Conjunction({"a": 0})))
    assert len(shown) == 1


def test_an_error_in_progress_ends_the_turn() -> None:
    run = make(PEOPLE, SMALL, max_queries=100)

    def fail(*args: Any) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run.answer_many([Conjunction({"a": 1})], progress=fail)
    run_with_time(lambda: run.answer(Conjunction({"a": 1})))


@pytest.mark.parametrize(
    "name", ["updates", "updates_left", "alpha", "beta", "n", "max_queries", "guarantee", "domain", "variant"]
)
def test_what_was_paid_for_cannot_be_set(name: str) -> None:
    run = make(PEOPLE, SMALL, max_queries=100)
    with pytest.raises(AttributeError):
        setattr(run, name, getattr(run, name))


def test_progress_is_told() -> None:
    seen: list[Any] = []
    run = make(PEOPLE, SMALL, max_queries=100)
    run.answer_many(marginals(SMALL, 2), progress=lambda *args: seen.append(args))
    assert seen
    seen.clear()
    make(PEOPLE, SMALL, max_queries=100, progress=lambda *args: seen.append(args))
    assert seen == [(0, 1, "reading the records"), (1, 1, "")]


def test_a_prior_of_another_size_is_told_the_one_shape_there_is() -> None:
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "max_queries": 5}
    with pytest.raises(ValueError, match=r"^prior: weights: shape \(5,\): must be \(2,\)$"):
        fastdp.PrivateMultiplicativeWeights([[0], [1]], fastdp.Domain(a=2), prior=np.ones(5), **given)
