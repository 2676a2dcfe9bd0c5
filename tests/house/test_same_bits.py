"""One seed, one result: in forked and spawned children, under many threads at once, inside a user's compiled code."""

import hashlib
import multiprocessing
import threading
import warnings

import numba
import numpy as np
import pytest

import fastdp
from fastdp.kernels import noise as kernels
from fastdp.kernels.words import word_one, words_into
from fastdp.randomness import noise_draws, noise_plans

KEY = np.arange(5, 13, dtype=np.uint32)


def releases(seed: int = 11) -> str:
    """A digest of a few releases that use several threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        rng = fastdp.Randomness(seed=seed)
    digest = hashlib.sha256()
    for values in (np.arange(200_000), np.linspace(-3, 3, 150_000)):
        digest.update(fastdp.laplace(values, sensitivity=2, epsilon=0.5, rng=rng).tobytes())
        digest.update(fastdp.gaussian(values, sensitivity=2, rho=0.3, rng=rng).tobytes())
    return digest.hexdigest()


def send(queue: "multiprocessing.Queue[str]") -> None:
    queue.put(releases())


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python's own about fork beside threads
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_draw_the_same_bits(method):
    expected = releases()
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    children = [context.Process(target=send, args=(queue,)) for _ in range(2)]
    for child in children:
        child.start()
    found = [queue.get(timeout=1800) for _ in children]
    for child in children:
        child.join(timeout=1800)
    assert found == [expected] * 2


def test_many_threads_at_once_draw_the_same_bits():
    expected, found = releases(), []

    def work():
        found.append(releases())

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 16


def test_kernels_are_called_from_a_users_compiled_code():
    """Words and noise by key and index, inside @njit, without a Python call."""

    @numba.njit
    def sum_of_words(key, n):
        buffer = np.empty(n, np.uint64)
        words_into(key, 0, 7, buffer)
        return buffer.sum(), word_one(key, 0, 7)

    words = np.empty(1000, np.uint64)
    words_into(KEY, 0, 7, words)
    assert sum_of_words(KEY, 1000) == (words.sum(), words[0])

    plan = noise_plans.laplace_plan(3.0)
    expected = noise_draws.integer_noise(plan, KEY, 2000)

    @numba.njit
    def draw(key, n, extra, law):
        out, undecided = np.zeros(n, np.int64), np.empty(n, np.int64)
        values = np.zeros(n, np.int64)
        left = kernels.add_laplace_into(values, key, 0, extra, law, out, undecided)
        return out, left

    found, left = draw(KEY, 2000, plan.extra, plan.law)
    assert left == 0
    np.testing.assert_array_equal(found, expected)
