"""Which process this is (fastdp/support/processes.py), and what a forked child may not go on with."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")

FORKS_IN_PROGRESS = """
import os, warnings
import numpy as np
import fastdp
from fastdp import *

warnings.simplefilter("ignore")
parent, calls = os.getpid(), []
read, write = os.pipe()

def progress(done, total, what):
    calls.append(done)
    if len(calls) == 2 and os.getpid() == parent and os.fork():
        os.wait()

domain = Domain(a=2, b=2, c=2, d=2)
X = np.random.default_rng(0).integers(0, 2, (200, 4))
budget = Budget(epsilon=1.0, delta=1e-6)
try:
    {call}
    outcome = "released"
except RuntimeError as error:
    outcome = str(error)
if os.getpid() != parent:
    os.write(write, outcome.encode())
    os._exit(0)
print(outcome)
print(os.read(read, 1000).decode())
print(len({where}.releases))
"""

CALLS = {
    "mwem": "mwem(X, domain, marginals(domain, 2), epsilon=1.0, delta=1e-6, progress=progress, {charged})",
    "greedy": "learn_conjunction(X, X[:, 0] & X[:, 1], k=3, epsilon=1.0, delta=1e-6, method='greedy', "
    "progress=progress, {charged})",
}


def test_a_child_has_another_number(run_python: Callable[..., str]) -> None:
    printed = run_python("""
import os
from fastdp.support.processes import here
print(here.number, flush=True)
for _ in range(2):
    if os.fork() == 0:
        print(here.number, flush=True)
        if os.fork() == 0:
            print(here.number, flush=True)
            os._exit(0)
        os.wait()
        os._exit(0)
    os.wait()
print(here.number)
""")
    assert printed.split() == ["0", "1", "2", "1", "2", "0"]


def test_importing_fastdp_sees_forks(run_python: Callable[..., str]) -> None:
    printed = run_python("""
import os, sys
import fastdp
assert "numpy" not in sys.modules
if os.fork() == 0:
    from fastdp.support.processes import here
    print(here.number, flush=True)
    os._exit(0)
os.wait()
""")
    assert printed.split() == ["1"]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("charged", [True, False])
def test_a_child_forked_by_a_callback_does_not_finish_the_release(
    run_python: Callable[..., str], name: str, charged: bool
) -> None:
    call = CALLS[name].format(charged="budget=budget" if charged else "budget=None")
    released, refused, charges = run_python(FORKS_IN_PROGRESS.format(call=call, where="budget")).splitlines()
    assert released == "released"
    assert refused.startswith("this release was begun in the parent process")
    assert int(charges) == charged


@pytest.mark.parametrize(
    ("make", "use"),
    [
        ("AboveThreshold(0, sensitivity=1, epsilon=1.0)", "it.first_above([50])"),
        ("ContinualCounter(rho=0.5)", "it.add(1)"),
        ("Budget(epsilon=1.0)", "laplace(1, sensitivity=1, epsilon=0.1, budget=it)"),
        (
            "PrivateMultiplicativeWeights(np.zeros((5000, 2), int), Domain(a=2, b=2), epsilon=1.0, delta=1e-6, "
            "max_queries=5)",
            "it.answer(Conjunction({'a': 1}))",
        ),
    ],
)
def test_a_child_with_its_parents_pid_is_a_child(run_python: Callable[..., str], make: str, use: str) -> None:
    """In a namespace of its own a child may have the process id of its parent."""
    printed = run_python(f"""
import os, warnings
import numpy as np
from fastdp import *
warnings.simplefilter("ignore")
it = {make}
pid = os.getpid()
if os.fork() == 0:
    os.getpid = lambda: pid
    try:
        {use}
        print("released")
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
{use}
print("released")
""")
    refused, released = printed.splitlines()
    assert "parent process" in refused
    assert released == "released"
