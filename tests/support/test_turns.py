"""Objects that answer one thread at a time, asked again while they answer: by a signal handler, in a forked child."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp.answering import dense_weights
from fastdp.mechanisms import gumbel_max
from fastdp.randomness import noise_draws
from fastdp.support.turns import new_turn, refuse_again

AGAIN = "what runs while an answer is made, such as a signal handler or a finaliser, must not ask for another"
DOMAIN = fastdp.Domain(a=3, b=2)
RECORDS = np.random.default_rng(0).integers(0, [3, 2], (20_000, 2))
QUERY = fastdp.Conjunction({"a": 1})


def watch() -> fastdp.AboveThreshold:
    return fastdp.AboveThreshold(0, sensitivity=1, epsilon=1.0)


def choice() -> fastdp.GumbelMax:
    return fastdp.GumbelMax(sensitivity=1, epsilon=1.0)


def weights() -> fastdp.PrivateMultiplicativeWeights:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.AccuracyWarning)
        return fastdp.PrivateMultiplicativeWeights(
            RECORDS, DOMAIN, epsilon=1.0, delta=1e-6, max_queries=50, variant="sharp"
        )


def during(patch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[[], Any]) -> list[Any]:
    """Once, in the middle of the next call, as a signal handler would: what came of it."""
    found: list[Any] = []
    function = getattr(module, name)

    def interrupted(*args: Any, **more: Any) -> Any:
        patch.setattr(module, name, function)
        try:
            found.append(act())
        except RuntimeError as error:
            found.append(str(error))
        return function(*args, **more)

    patch.setattr(module, name, interrupted)
    return found


def test_another_thread_waits_and_the_same_is_refused() -> None:
    turn, order = new_turn(), []

    def wait() -> None:
        refuse_again(turn)
        with turn:
            order.append("other")

    with turn:
        thread = threading.Thread(target=wait)
        thread.start()
        with pytest.raises(RuntimeError, match=AGAIN):
            refuse_again(turn)
        order.append("holder")
    thread.join()
    refuse_again(turn)
    assert order == ["holder", "other"]


def test_above_threshold_is_not_asked_while_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for itself, or use noise twice."""
    one = watch()
    found = during(monkeypatch, noise_draws, "add_noise", lambda: one.above(10**6))
    assert one.first_above([-(10**6), -(10**6)]) is None
    assert found == [AGAIN]
    assert one.above(10**6)


@pytest.mark.parametrize("act", ["offer", "winner", "merge"])
def test_a_choice_is_not_asked_while_it_takes_candidates(act: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays whole: what was offered takes part, what was refused does not."""
    one = choice()
    shard = one.shard()
    shard.offer([1], 7)
    one.offer([3, 4], 0)
    acts = {"offer": lambda: one.offer([50], 9), "winner": one.winner, "merge": lambda: one.merge(shard)}
    found = during(monkeypatch, gumbel_max, "_kth_score", acts[act])
    one.offer([500, 600], 2)
    assert found == [AGAIN]
    assert one.candidates == 4
    assert one.winner() == 3


def test_a_distribution_is_not_read_while_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    run = weights()
    found = during(monkeypatch, dense_weights.DenseWeights, "scale", lambda: run.synthetic)
    while not found:
        run._run.updates = 0
        run.answer_many([fastdp.Conjunction({"a": 0, "b": 1})] * 1)
        with run._turn:
            run._run._noisy_threshold = -(10**12)  # so that the next test fires
    assert found == [AGAIN]
    assert abs(run.synthetic.probabilities().sum() - 1) < 1e-9


def test_an_interrupted_answer_leaves_the_turn_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    run = weights()

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    for progress in (interrupt, None):
        if progress is None:
            monkeypatch.setattr(run, "_answers", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run.answer_many([QUERY], progress=progress)
        monkeypatch.undo()
        thread = threading.Thread(target=run.answer, args=(QUERY,))
        thread.start()
        thread.join()
        assert 0 <= run.answer(QUERY) <= 1
    assert len(run.transcript) == 4


FORKS: dict[str, tuple[Callable[[], Any], Any, str, Callable[[Any], Any]]] = {
    "AboveThreshold": (watch, noise_draws, "add_noise", lambda one: one.first_above([10**6])),
    "GumbelMax, offered to": (choice, gumbel_max, "tops_of", lambda one: one.offer([1, 2], 0) or one),
    "GumbelMax": (lambda: offered(choice()), gumbel_max.GumbelState, "ranking", lambda one: one.winner()),
    "PrivateMultiplicativeWeights": (weights, noise_draws, "integer_noise", lambda one: one.answer(QUERY)),
}


def offered(one: fastdp.GumbelMax) -> fastdp.GumbelMax:
    one.offer([1, 2, 3], 0)
    return one


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", FORKS)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_that_a_handler_forks_gets_no_answer(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parent and child would both tell what the same noise says, of what they are then asked."""
    make, module, name, ask = FORKS[kind]
    one, parent = make(), os.getpid()
    forked = during(monkeypatch, module, name, os.fork)
    code = 9
    try:
        answer = ask(one)
        code = 1
    except RuntimeError as error:
        code = 0 if "belongs to the parent process" in str(error) else 2
    finally:
        if os.getpid() != parent:
            os._exit(code)
    assert answer is not None
    assert os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]) == 0
