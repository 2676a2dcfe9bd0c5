"""The known answers: right by the definitions in integers, asked of all kernels that draw, missed by wrong code."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from fastdp.kernels import known_answers as asked
from fastdp.kernels import layout
from fastdp.randomness import exact_draws as exact
from fastdp.randomness.noise_plans import gaussian_plan, laplace_plan
from tests import oracles

ROOT = Path(__file__).resolve().parents[2]
KEY = asked._key()
AES_KEY = asked._aes_key()
SCALES = {0: 3.0, layout.MEDIUM_EXTRA: 2.0**20, layout.LONG_EXTRA: 2.0**33}
LAYOUT_HEADER = 16 + 32  # bytes of a file before the checksum: magic and key


# --- the answers are right


def test_the_vector_is_that_of_the_rfc() -> None:
    nonce = bytes.fromhex("000000090000004a00000000")
    assert list(asked._RFC) == oracles.words.chacha_block(bytes(range(32)), 1, nonce)
    b = asked._GROUP * 16 + 1
    assert (b % 2**32, b >> 32, asked._STREAM) == (1, 0x09000000, 0x4A000000)


def test_the_block_is_that_of_fips_197() -> None:
    (vector,) = (v for v in oracles.aes.VECTORS if v.source == "FIPS 197, C.3")
    assert (vector.key, vector.result) == (KEY.tobytes(), asked._FIPS)
    stream, group = asked._FIPS_AT
    assert vector.block == stream.to_bytes(8, "big") + (64 * group + 63).to_bytes(8, "big")
    assert b"".join(oracles.aes.expanded_key(vector.key)) == asked._SCHEDULE
    blocks = oracles.aes.group_half_words(KEY.tolist(), stream, group)
    assert (asked._FIPS, asked._print(np.array(blocks, np.uint32))) == asked._CTR


def word_of(key: Any) -> oracles.words.Words:
    return oracles.words.words_of(key.tolist())


def words(key: Any, stream: int, first: int, out: Any) -> None:
    out[:] = [word_of(key)(stream, first + i) for i in range(out.size)]


def groups(key: Any, stream: int, group: int, out: Any) -> None:
    words(key, stream, group * 128, out.view(np.uint64))


def laplace(values: Any, *rest: Any) -> int:
    *grid, key, block, extra, law, out, _undecided = rest
    assert laplace_plan(SCALES[extra]).law.tolist() == law.tolist()
    draws = [exact.geometric_draw(word_of(key), block * layout.LAPLACE_BLOCK + i, SCALES[extra], two_sided=True)
             for i in range(values.size)]  # fmt: skip
    return add(values, draws, out, *grid)


def gaussian(values: Any, *rest: Any) -> int:
    *grid, key, block, extra, law, out, _undecided = rest
    plan = next(p for p in map(gaussian_plan, (3.0, 2.0**20, 2.0**33, law[layout.PEAK])) if p.extra == extra)
    assert plan.law.tolist() == law.tolist()
    return add(values, exact.gaussian_block(word_of(key), block, values.size, plan.sigma), out, *grid)


def few_with(definition: Any) -> Any:
    """The definition of a kernel for few values, which is that of the kernel for all from block 0 on, in place."""

    def few(values: Any, key: bytes, law: Any) -> int:
        grid = [law[0]] if values.dtype == np.float64 else []
        words = np.frombuffer(key, np.uint32)
        return definition(values.copy(), *grid, words, 0, int(law[1]), law[2:], values, None)

    return few


def add(values: Any, draws: list[int], out: Any, grid: float | None = None) -> int:
    if grid is None:
        out[:] = [int(v) + z for v, z in zip(values, draws, strict=True)]
    else:
        out[:] = [float(grid * (round(Fraction(v) / Fraction(grid)) + z)) for v, z in zip(values, draws, strict=True)]
    return 0


@pytest.mark.parametrize(
    ("name", "definition"),
    [
        ("chacha20_blocks.fill_chacha20_into", groups),
        ("words.fill_groups_into", groups),
        ("words.words_into", words),
        ("words.word_one", lambda key, stream, index: word_of(key)(stream, index)),
        ("noise.add_laplace_into", laplace),
        ("noise.add_laplace_on_grid_into", laplace),
        ("noise.add_gaussian_into", gaussian),
        ("noise.add_gaussian_on_grid_into", gaussian),
        ("noise.add_laplace_to_few", few_with(laplace)),
        ("noise.add_laplace_to_few_on_grid", few_with(laplace)),
        ("noise.add_gaussian_to_few", few_with(gaussian)),
        ("noise.add_gaussian_to_few_on_grid", few_with(gaussian)),
    ],
)
def test_words_and_noise_are_those_of_the_definition(name: str, definition: Any) -> None:
    answer = asked.ANSWERS[name]
    assert answer.ask(definition, "", KEY) == answer.wanted
    assert answer.by_aes is None or answer.ask(definition, "", AES_KEY) == answer.by_aes


@pytest.mark.parametrize("kind", ["int64", "float64"])
def test_selection_is_that_of_the_oracles(kind: str) -> None:
    """Of what the kernels answer, what the oracles state, too: weights, coins, and who arrives first."""
    scores = asked._scores(kind).tolist()
    ((top, weights),) = oracles.selection.block_weights(scores, asked._FACTOR, int(asked._LEVELS))
    assert (top, sum(weights)) == asked.ANSWERS["buckets.sum_blocks_into"].wanted
    for key, wanted in zip((KEY, AES_KEY), asked.ANSWERS["gumbel_max.choose_gumbel"][1:3], strict=True):
        firsts = (oracles.selection.gumbel_max(word_of(key), scores, eta, 1)[0] for eta in (0.001, asked._ETA))
        assert tuple(firsts) == wanted
    for key, wanted in zip((KEY, AES_KEY), asked.ANSWERS["permute_and_flip.choose_head"][1:3], strict=True):
        word = word_of(key)
        heads = (oracles.selection.permute_and_flip_heads(word, scores, eta) for eta in (0.001, asked._ETA))
        assert tuple(oracles.selection.chosen_head(word, of_eta) for of_eta in heads) == wanted
    counted, marked = (asked.ANSWERS[f"permute_and_flip.{name}_heads_into"] for name in ("count", "mark"))
    for key, count, flag in ((KEY, counted.wanted, marked.wanted), (AES_KEY, counted.by_aes, marked.by_aes)):
        heads = oracles.selection.permute_and_flip_heads(word_of(key), scores, asked._ETA, first=7)
        flags = np.array([float(i + 7 in heads) for i in range(len(scores))])
        assert ((0, len(heads)), asked._print(flags)) == (count, flag)
    assert asked._FACTOR <= (1 - 2.0**-40) * asked._ETA / layout.LN2


# --- every kernel that draws is asked, in every form


def test_kernels_that_take_a_key_and_are_called_from_python_have_an_answer() -> None:
    """Kernels with a key, but for those that only other kernels call or that draw after the noise."""
    inner = {
        "discrete_laplace.laplace_block_into", "discrete_gaussian.gaussian_block_into",
        "discrete_gaussian.resolve_proposal", "draw_bits.fill_words_into", "permute_and_flip.flip_coins_into",
        "scores.first_words", "words.expanded", "words.fill_half_into",
    }  # fmt: skip
    synthetic = {"sampling.sample_records_into", "sampling.search_records_into"}
    found = set()
    modules = (
        "words", "chacha20_blocks", "aes", "aes_software", "noise", "discrete_laplace", "discrete_gaussian",
        "draw_bits", "scores", "buckets", "gumbel_max", "permute_and_flip", "sampling",
    )  # fmt: skip
    for module in modules:
        imported = __import__(f"fastdp.kernels.{module}", fromlist=["x"])
        for name, kernel in vars(imported).items():
            python = getattr(kernel, "py_func", None)
            if python is not None and python.__module__ == imported.__name__ and "key" in python.__annotations__:
                found.add(f"{module}.{name}")
    assert found - inner - synthetic <= set(asked.ANSWERS)


WHOLE, FLOATS = numba.types.Array(numba.int64, 1, "C"), numba.types.Array(numba.float64, 1, "C")


@pytest.mark.parametrize(
    "types",
    [
        (FLOATS, WHOLE), (WHOLE, FLOATS), (WHOLE,), (WHOLE,) * 3, (numba.types.Array(numba.int32, 1, "C"),) * 2,
        (WHOLE, numba.types.Array(numba.int64, 2, "C")), (WHOLE, numba.types.Optional(WHOLE)), (WHOLE, numba.int64),
    ],
)  # fmt: skip
def test_code_of_another_form_is_not_entered(types: tuple[Any, ...]) -> None:
    def never(*_: Any) -> None:
        raise AssertionError

    asked.ask_kernel("scores.find_tops_into", types, never, "nowhere")


@pytest.mark.parametrize(
    ("argument", "kind"),
    [(3, numba.types.literal(3)), (3, numba.types.literal(4)), (0.5, numba.float32), (0.5, numba.int64)],
)
def test_numbers_of_another_form(argument: Any, kind: Any) -> None:
    with pytest.raises(asked._OtherForm):
        asked._in_form(argument, kind)


def test_rows_in_another_order() -> None:
    """The code of a kernel that was compiled for arrays in Fortran's order reads them so."""
    from fastdp.kernels.buckets import resolve_into

    for order in "CF":
        made = np.zeros((4, 9), np.uint64, order=order)
        scores, outcomes = np.arange(3), np.zeros((3, 9), np.int64)
        resolve_into(scores, 0.1, 0.1, 40.0, scores[2:], 2, made, False, layout.SLACK, outcomes)  # asked in this form


ASKED = """
import json
import numpy as np
from fastdp.kernels import known_answers as asked
names = []
compare = asked._compare
asked._compare = lambda name, *rest: (names.append(name), compare(name, *rest))
import fastdp
{code}
print(json.dumps(names))
"""


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("fastdp.laplace(1, sensitivity=1, epsilon=1)", ["noise.add_laplace_to_few"]),
        ("fastdp.gaussian(np.zeros(2000), sensitivity=1, rho=1)", ["noise.add_gaussian_on_grid_into"]),
        ("fastdp.permute_and_flip([1, 2], sensitivity=1, epsilon=1)",
         ["permute_and_flip.choose_head"]),
        ("fastdp.Randomness().generator().random()",
         ["bit_generator.next_double", "bit_generator.next_uint32", "bit_generator.next_uint64"]),
        ("from fastdp.kernels.function_pointers import TABLE\nTABLE['words'].address", ["function_pointers.words"]),
    ],
)  # fmt: skip
def test_what_is_loaded_is_asked_and_nothing_else(code: str, wanted: list[str], run_python: Any) -> None:
    run_python(ASKED.format(code=code))  # where it was not compiled yet, pieces of it are asked, too
    assert sorted(json.loads(run_python(ASKED.format(code=code)))) == sorted(wanted)


def test_the_same_answers_elsewhere(fingerprint_elsewhere: Any) -> None:
    assert fingerprint_elsewhere("tests.kernels.test_known_answers") == fingerprint()


def fingerprint() -> str:
    """Calls of kernels, each of which is asked when it is compiled."""
    import fastdp

    fastdp.gaussian([1, 2], sensitivity=1, rho=1)
    for scores in ([1, 2, 3], [1.0, 2.0, 3.0]):
        fastdp.top_k(scores, k=2, sensitivity=1, epsilon=1)
        fastdp.exponential_mechanism(scores, sensitivity=1, epsilon=1, method="buckets")
    return "asked"


# --- and wrong code is found

RELEASE = """
import fastdp
try:
    with fastdp.Budget(epsilon=1) as budget:
        print("released", fastdp.laplace([1, 2], sensitivity=1, epsilon=1))
except RuntimeError as error:
    print(type(error).__name__, error)
"""
WRONG = (
    "KnownAnswerError fastdp.kernels.noise.add_laplace_to_few: its known answer came out wrong, and nothing is released"
)


def release(tree: Path, cache: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", RELEASE],
        env=os.environ | {"PYTHONPATH": str(tree), "FASTDP_CACHE_DIR": str(cache)}, cwd=tree,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


def copy_sources(tree: Path) -> None:
    """The package, without what was compiled when the checkout was installed in place."""
    shutil.copytree(ROOT / "fastdp", tree / "fastdp", ignore=shutil.ignore_patterns("kernels", "bench"))
    shutil.copytree(ROOT / "kernels", tree / "fastdp" / "kernels", ignore=shutil.ignore_patterns("compiled"))


def test_a_damaged_file_with_a_right_checksum(tmp_path: Path) -> None:
    """Machine code that computes something else than what it was compiled from: one byte of a constant of ChaCha20."""
    tree, cache = tmp_path / "tree", tmp_path / "cache"
    copy_sources(tree)
    assert release(tree, cache).startswith("released")
    (file,) = cache.glob("*/noise.add_laplace_to_few-*")
    content = file.read_bytes()
    header, body = content[:LAYOUT_HEADER], bytearray(content[LAYOUT_HEADER + 32 :])
    at = body.find(b"expa")  # the first constant
    assert at > 0
    while at > 0:
        body[at] ^= 1
        at = body.find(b"expa")
    file.write_bytes(header + hashlib.sha256(body).digest() + body)
    for _ in range(2):  # it stays refused
        said = release(tree, cache)
        assert said.startswith(WRONG)
        assert str(file) in said
    file.unlink()
    assert release(tree, cache).startswith("released")


@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        ("chacha20_blocks", "rotl(d ^ a, 8)", "rotl(d ^ a, 9)"),
        ("aes", "last << uint32(24)", "last << uint32(23)"),
        ("draw_bits", "int64(sign << uint64(63))", "int64((sign ^ uint64(1)) << uint64(63))"),
    ],
)
def test_a_wrong_kernel_is_neither_used_nor_written(tmp_path: Path, file: str, right: str, wrong: str) -> None:
    """The kernel that is called answers for its parts."""
    kernel = "noise.add_laplace_to_few"
    copy_sources(tmp_path)
    path = tmp_path / "fastdp" / "kernels" / f"{file}.py"
    assert path.read_text().count(right) == 1
    path.write_text(path.read_text().replace(right, wrong))
    said = release(tmp_path, tmp_path / "cache")
    assert said.startswith(f"KnownAnswerError fastdp.kernels.{kernel}: ")
    assert not list((tmp_path / "cache").glob(f"*/{kernel}-*"))
