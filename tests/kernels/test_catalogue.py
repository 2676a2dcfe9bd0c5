"""The kernels as users see them: the page that lists them, and calls from compiled functions of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import fastdp
from fastdp.kernels import catalogue
from fastdp.kernels.catalogue import FIELDS, MACHINERY, MODULES, entries
from fastdp.kernels.clipping import LEAST_SQUARE, norms_into
from fastdp.kernels.elementary import ln_one
from fastdp.kernels.literals import count_among_into
from fastdp.kernels.noise import GAUSSIAN_BLOCK, LAPLACE_BLOCK, add_gaussian_into, add_laplace_into
from fastdp.kernels.projections import BALL, project_one
from fastdp.kernels.scores import find_tops_into
from fastdp.kernels.weights import scale_masked, sum_valued
from fastdp.kernels.words import word_one, words_into
from fastdp.randomness import noise_plans

ROOT = Path(__file__).resolve().parents[2]
KEY = np.arange(8, dtype=np.uint32)
PARTS = 6  # pieces of work, side by side


# --- the page


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8") == catalogue.page(), (
        "make it anew: python -m fastdp.kernels > docs/kernels.md"
    )


def test_the_command_prints_the_page() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fastdp.kernels"],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == catalogue.page()


def test_every_module_is_on_the_page_or_machinery() -> None:
    files = {path.stem for path in (ROOT / "kernels").glob("*.py") if not path.stem.startswith("_")}
    assert files == {*MODULES, *MACHINERY}
    assert len(MODULES) == len(set(MODULES))


@pytest.mark.parametrize("module", MODULES)
def test_every_kernel_has_a_contract(module: str) -> None:
    found = entries(module)
    assert found
    names = {entry.name for entry in found}
    for entry in found:
        assert entry.summary.endswith((".", ":")) or "\n" in entry.text, entry.name
        assert len(entry.summary) > 5, entry.name
        if not entry.inline:
            assert {"Shapes", "Cost", "Used by", "Oracle"} <= set(entry.fields), (entry.name, list(entry.fields))
            assert list(entry.fields) == [field for field in FIELDS if field in entry.fields], entry.name
            if like := entry.fields.get("Like"):
                assert like.replace(",", "").replace(";", "").split()[0] in names, entry.name


def test_a_contract_that_is_missing_is_noticed() -> None:
    text = "Something.\n\nout = in\n\nShapes    x float64[n],\n          more\nCost      c"
    entry = catalogue.Entry("f", words_into, False, text)
    assert entry.fields == {"Shapes": "x float64[n], more", "Cost": "c"}
    assert entry.formula == "out = in"
    assert entry.call == "f(key, stream, first, out)"


# --- calls from a user's compiled functions: serial, and spread by prange, beside the same calls from Python

_laplace, _gaussian = noise_plans.laplace_plan(37.0), noise_plans.gaussian_plan(12.5)
_laplace_extra, _laplace_law = _laplace.extra, _laplace.law
_gaussian_extra, _gaussian_law = _gaussian.extra, _gaussian.law


def words_and_logarithms(out: Any, part: int) -> Any:
    words_into(KEY, part, 3, out[part].view(np.uint64))
    out[part, 0] = np.int64(np.uint64(word_one(KEY, part, 1000)) >> np.uint64(1))
    for i in range(1, 100):
        out[part, i] = np.int64(ln_one(1.0 + i + part) * 2.0**40)


def laplace_noise(out: Any, part: int) -> Any:
    at = part * (out.shape[1] // LAPLACE_BLOCK + 1)
    row, undecided = out[part], np.empty(out.shape[1], np.int64)
    add_laplace_into(row, KEY, at, _laplace_extra, _laplace_law, row, undecided)


def gaussian_noise(out: Any, part: int) -> Any:
    at = part * (out.shape[1] // GAUSSIAN_BLOCK + 1)
    add_gaussian_into(out[part], KEY, at, _gaussian_extra, _gaussian_law, out[part], np.empty_like(out[part]))


def weights_and_tops(out: Any, part: int) -> Any:
    x, mask = np.full(out.shape[1], 1.0 + part), (np.arange(out.shape[1]) % 3 == 0).astype(np.uint8)
    total = scale_masked(x, mask, 1.5)
    out[part] = (x * 8).astype(np.int64)
    out[part, 0] = np.int64(total + sum_valued(x, np.full(x.size, 0.5)))
    scores, found = np.arange(out.shape[1]) * (part + 1) % 977, np.empty((x.size + 2047) // 2048, np.int64)
    out[part, 1] = find_tops_into(scores, found)
    out[part, 2 : 2 + found.size] = found


def projections(out: Any, part: int) -> Any:
    w, center = np.arange(9.0) + part, np.zeros(9)
    project_one(BALL, center, center, 1.5, w, np.empty(9))
    out[part, :9] = w.view(np.int64)


def norms(out: Any, part: int) -> Any:
    n, d = 70, 5
    found = np.empty(n)
    norms_into(np.cos(np.arange(n * d) * 0.1 + part), d, LEAST_SQUARE, found)
    out[part, :n] = found.view(np.int64)


def literals(out: Any, part: int) -> Any:
    columns = np.arange(24).astype(np.uint64).reshape(6, 4) * np.uint64(0x0123456789ABCDEF)
    counts = np.zeros((2, 6), np.int64)
    count_among_into(columns, columns[part], columns[0], counts)
    out[part, :6] = counts[0]
    out[part, 6:12] = counts[1]


WORK = [words_and_logarithms, laplace_noise, gaussian_noise, weights_and_tops, projections, norms, literals]


def spread(each: Any, parallel: bool) -> Any:
    """All parts of a piece of work, from one compiled function: the user's."""

    def serial(out: Any) -> None:
        for part in range(PARTS):
            each(out, part)

    def side_by_side(out: Any) -> None:
        for part in numba.prange(PARTS):
            each(out, part)

    return numba.njit(parallel=True)(side_by_side) if parallel else numba.njit(serial)


@pytest.mark.parametrize("piece", WORK, ids=lambda piece: piece.__name__)
def test_kernels_in_a_users_function(piece: Callable[..., Any]) -> None:
    n = 5000
    direct = np.zeros((PARTS, n), np.int64)
    with np.errstate(over="ignore"):
        for part in range(PARTS):
            piece(direct, part)  # the kernels, from Python
    assert direct.any(axis=1).all()
    assert len({row.tobytes() for row in direct}) == PARTS
    each = numba.njit(piece)  # compiled once for both loops
    for parallel in (False, True):
        out = np.zeros_like(direct)
        spread(each, parallel)(out)
        assert (out == direct).all(), parallel


def test_noise_of_a_users_loop_is_that_of_a_release() -> None:
    """One release in the blocks of a loop: the bits are those of fastdp.laplace under the same key."""

    class Fixed(fastdp.Randomness):
        def key(self) -> Any:
            return KEY.copy()

    values = np.arange(10_000)
    wanted = fastdp.laplace(values, sensitivity=37, epsilon=1.0, rng=Fixed())
    out = values.copy()

    @numba.njit
    def in_blocks(out: Any) -> Any:
        left = 0
        undecided = np.empty(LAPLACE_BLOCK, np.int64)
        for block in range((out.size + LAPLACE_BLOCK - 1) // LAPLACE_BLOCK):
            part = out[block * LAPLACE_BLOCK : (block + 1) * LAPLACE_BLOCK]
            left += add_laplace_into(part, KEY, block, _laplace_extra, _laplace_law, part, undecided)
        return left

    assert in_blocks(out) == 0
    assert (out == wanted).all()


# --- whose options hold

HASTY = """
import numba, numpy as np
from fastdp.kernels import elementary, noise

@numba.njit(fastmath=True, error_model="python")
def first(x, out):  # the first to call: without an answer of its own, a kernel would take over fastmath from here
    noise.add_on_grid_into(x, 0.25, np.zeros(1000), out)
    return elementary.ln_pair(x[0], x[0] * 2.0**-60)

x, out = np.linspace(0.5, 3.0, 1000), np.empty(1000)
print(first(x, out))
for kernel in (noise.add_on_grid_into, elementary.ln_pair) if FRESH else ():
    for code in kernel.inspect_llvm().values():
        assert " fast " not in code and " reassoc " not in code, kernel
pair = elementary.ln_pair(0.5, 0.5 * 2.0**-60)
import hashlib
print(pair, hashlib.sha256(out).hexdigest())
"""


def test_a_users_fastmath_stays_out_of_the_kernels(tmp_path: Path, run_python: Callable[..., str]) -> None:
    fresh = HASTY.replace("FRESH", "True")
    hasty = run_python(fresh, FASTDP_CACHE_DIR=str(tmp_path / "a")).splitlines()
    assert hasty[0] == hasty[1].rpartition(" ")[0]
    calm = run_python(fresh.replace("fastmath=True, ", ""), FASTDP_CACHE_DIR=str(tmp_path / "b")).splitlines()
    assert hasty == calm
    assert run_python(HASTY.replace("FRESH", "False"), FASTDP_CACHE_DIR=str(tmp_path / "a")).splitlines() == calm


def test_a_users_function_is_cached_and_finds_the_kernels(tmp_path: Path, run_python: Callable[..., str]) -> None:
    """numba's own cache of the user's function, twice: the second process compiles nothing of it."""
    (tmp_path / "mine.py").write_text(
        "import numba, numpy as np\n"
        "from fastdp.kernels.words import words_into\n"
        "@numba.njit(cache=True)\n"
        "def total(key):\n"
        "    out = np.empty(100, np.uint64)\n"
        "    words_into(key, 0, 0, out)\n"
        "    return out.sum()\n"
    )
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import numpy as np, mine
print(mine.total(np.arange(8, dtype=np.uint32)), sum(mine.total.stats.cache_hits.values()))
"""
    (first, none), (second, hit) = (run_python(code, NUMBA_CACHE_DIR=str(tmp_path / "cache")).split() for _ in range(2))
    out = np.empty(100, np.uint64)
    words_into(KEY, 0, 0, out)
    assert first == second == str(out.sum())
    assert (none, hit) == ("0", "1")
