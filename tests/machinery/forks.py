"""A matrix of forks: each stage of a parent against a child that calls at once. `python -m tests.machinery.forks`.

A case is a program of its own. The child either makes a release of its own (it may: nothing of the parent's is spent
by it), or is refused what belongs to its parent; it never hangs, and never finishes what the parent has begun.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 1860  # against hangs only: a cold child compiles

PREAMBLE = """
import faulthandler, os, signal, sys, threading, time, warnings
faulthandler.dump_traceback_later({seconds}, exit=True)
warnings.simplefilter("ignore")


def in_child(call):
    '''What the call says in a forked child: "released", or the error's text.'''
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm({seconds} - 30)  # faulthandler's timer would wait for the parent's
        try:
            call()
            said = "released"
        except BaseException as error:
            said = f"{{type(error).__name__}}: {{error}}"
        os.write(write, said.encode()[:4000])
        os._exit(0)
    os.close(write)
    said = b""
    while part := os.read(read, 4096):
        said += part
    os.waitpid(pid, 0)
    return said.decode() or "died"
"""

FIRST = """
import fastdp
def call(): fastdp.laplace([1, 2], sensitivity=1, epsilon=1.0)
thread = threading.Thread(target=call)
thread.start()
{wait}
print(in_child(call))
thread.join()
"""

OWNED = """
import numpy as np
import fastdp
from fastdp import *
parent = os.getpid()
{body}
"""

CALLBACK = """
domain = Domain(a=2, b=2, c=2, d=2)
X = np.random.default_rng(0).integers(0, 2, (200, 4))
b = Budget(epsilon=1.0, delta=1e-6)
state = []
read, write = os.pipe()
def progress(done, total, what):
    state.append(done)
    if len(state) == 2 and os.getpid() == parent and os.fork():
        os.wait()
try:
    {call}
    said = "released"
except BaseException as error:
    said = f"{{type(error).__name__}}: {{error}}"
if os.getpid() != parent:
    os.write(write, said.encode()); os._exit(0)
assert said == "released", said
assert len(b.releases) == 1
print(os.read(read, 4000).decode())
"""

CASES: dict[str, tuple[str, str]] = {
    # while another thread makes its first call: at once, as numba is imported, a little into the compilation
    **{
        f"first call, {name}": (FIRST.format(wait=wait), "released")
        for name, wait in {
            "at once": "",
            "numba begins": "while 'numba' not in sys.modules: time.sleep(0.0005)",
            "numba is there": "while 'numba.core.registry' not in sys.modules: time.sleep(0.0005)",
            "a kernel module": "while 'fastdp.kernels.compile' not in sys.modules: time.sleep(0.0005)",
            "compiling": "time.sleep(1.5)",
            "soon": "time.sleep(0.1)",
            "later": "time.sleep(0.4)",
        }.items()
    },
    "mwem forks in progress": (
        OWNED.format(
            body=CALLBACK.format(
                call="mwem(X, domain, marginals(domain, 2), epsilon=1.0, delta=1e-6, budget=b, progress=progress)"
            )
        ),
        "parent process",
    ),
    "greedy forks in progress": (
        OWNED.format(
            body=CALLBACK.format(
                call="learn_conjunction(X, X[:, 0] & X[:, 1], k=3, epsilon=1.0, delta=1e-6, method='greedy', "
                "budget=b, progress=progress)"
            )
        ),
        "parent process",
    ),
    "a budget of the parent's": (
        OWNED.format(
            body="b = Budget(epsilon=1.0)\n"
            "print(in_child(lambda: laplace(1, sensitivity=1, epsilon=0.1, budget=b)))\n"
            "laplace(1, sensitivity=1, epsilon=0.1, budget=b)"
        ),
        "parent process",
    ),
    "inside a block": (
        OWNED.format(
            body="with Budget(epsilon=1.0) as b:\n"
            "    print(in_child(lambda: laplace(1, sensitivity=1, epsilon=0.1)))\n"
            "    laplace(1, sensitivity=1, epsilon=0.1)"
        ),
        "parent process",
    ),
    "a namespace of its own": (
        OWNED.format(
            body="import ctypes\n"
            "b = Budget(epsilon=1.0)\n"
            "if ctypes.CDLL(None).unshare(0x20000000): print('parent process: no namespaces here')\n"
            "else: print(in_child(lambda: laplace(1, sensitivity=1, epsilon=0.1, budget=b)))"
        ),
        "parent process",
    ),
    "AboveThreshold": (
        OWNED.format(
            body="w = AboveThreshold(0, sensitivity=1, epsilon=1.0)\nprint(in_child(lambda: w.first_above([50])))"
        ),
        "parent process",
    ),
    "ContinualCounter": (
        OWNED.format(body="c = ContinualCounter(rho=0.5)\nc.add(1)\nprint(in_child(lambda: c.add(1)))"),
        "parent process",
    ),
    "SparseVector": (
        OWNED.format(
            body="w = SparseVector(0, sensitivity=1, epsilon=1.0, positives=9)\nprint(in_child(lambda: w.above(50)))"
        ),
        "parent process",
    ),
    "GumbelMax": (
        OWNED.format(
            body="g = GumbelMax(sensitivity=1, epsilon=1.0)\ng.offer([1, 2, 3], 0)\nprint(in_child(g.winner))"
        ),
        "parent process",
    ),
    "PrivateMultiplicativeWeights": (
        OWNED.format(
            body="d = Domain(a=2, b=2)\n"
            "X = np.zeros((5000, 2), int)\n"
            "p = PrivateMultiplicativeWeights(X, d, epsilon=1.0, delta=1e-6, max_queries=5)\n"
            "print(in_child(lambda: p.answer(Conjunction(dict(a=1)))))"
        ),
        "parent process",
    ),
    "threads at work": (
        OWNED.format(
            body="fastdp.set_num_threads(2)\n"
            "values = np.arange(3_000_000)\n"
            "laplace(values, sensitivity=1, epsilon=1.0)\n"
            "t = threading.Thread(target=lambda: [laplace(values, sensitivity=1, epsilon=1.0) for _ in range(20)])\n"
            "t.start()\n"
            "time.sleep(0.01)\n"
            "print(in_child(lambda: laplace(values, sensitivity=1, epsilon=1.0)))\n"
            "t.join()"
        ),
        "released",
    ),
    "threads that charge": (
        OWNED.format(
            body="b = Budget(epsilon=1e9)\n"
            "stop = []\n"
            "def charge():\n"
            "    while not stop: laplace(1, sensitivity=1, epsilon=1.0, budget=b)\n"
            "ts = [threading.Thread(target=charge) for _ in range(3)]\n"
            "[t.start() for t in ts]\n"
            "time.sleep(0.05)\n"
            "said = {in_child(lambda: laplace(1, sensitivity=1, epsilon=1.0, budget=Budget(epsilon=2.0)))\n"
            "        for _ in range(20)}\n"
            "stop.append(1)\n"
            "[t.join() for t in ts]\n"
            "print(*said)"
        ),
        "released",
    ),
}


def run(name: str, cold: bool, place: str) -> str:
    """Empty if the case holds, else what happened."""
    code, wanted = CASES[name]
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | ({"FASTDP_CACHE_DIR": place} if cold else {})
    program = PREAMBLE.format(seconds=SECONDS - 60) + code
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode:
        return done.stderr.strip()[-600:]
    return "" if wanted in done.stdout else f"expected {wanted!r}, got {done.stdout.strip()[:300]!r}"


def main(arguments: list[str]) -> int:
    import tempfile

    parser = argparse.ArgumentParser(prog="python -m tests.machinery.forks", description=__doc__)
    parser.add_argument("--only", default="", help="cases whose names have this in them")
    options = parser.parse_args(arguments)
    failed = 0
    for name in CASES:
        if options.only not in name:
            continue
        for cold in (False, True) if name.startswith("first call") else (False,):
            with tempfile.TemporaryDirectory() as place:
                found = run(name, cold, place)
            failed += bool(found)
            print(f"{'FAILED' if found else 'ok':7}{name}{', cold' if cold else ''}  {found}", flush=True)
    print(f"{failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
