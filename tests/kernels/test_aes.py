"""AES-256 in counter mode: by instructions, by software and through the seam, against the vectors of NIST and
tests/oracles/aes.py; the same words whatever the code is compiled for; the keys that name it."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numpy as np
import pytest

from fastdp.kernels import aes, aes_software, layout
from fastdp.kernels.aes_lanes import BLOCK_LANES, lanes_of_target
from fastdp.kernels.words import fill_groups_into, fill_half_into, word_one, words_into
from tests import oracles

GUARD = 0x5A5A5A5A
RANDOM = random.Random(26)
HOST = llvmlite.binding.get_host_cpu_features()
X86 = llvmlite.binding.get_process_triple().startswith("x86_64")
VECTORS = {"argvalues": oracles.aes.VECTORS, "ids": [vector.source for vector in oracles.aes.VECTORS]}


def key_of(data: bytes) -> np.ndarray:
    """As keys of the operating system are: the ninth word names AES."""
    return np.append(np.frombuffer(data, "<u4").astype(np.uint32), np.uint32(layout.AES_MARK))


def schedule_of(data: bytes) -> np.ndarray:
    schedule = np.zeros(layout.SCHEDULE, np.uint32)
    aes.expand_key_into(key_of(data), schedule)
    return schedule


def by_seam(schedule: np.ndarray, stream: Any, group: int, out: np.ndarray) -> None:
    """With the key itself, and with its round keys as kernels pass them on."""
    again = np.zeros_like(out)
    fill_groups_into(np.append(schedule[:8], np.uint32(layout.AES_MARK)), stream, group, again)
    fill_groups_into(schedule, stream, group, out)
    assert (out == again).all()


FILLS: dict[str, Callable[..., None]] = {"software": aes_software.fill_software_into, "the seam": by_seam}
if BLOCK_LANES:
    FILLS["instructions"] = aes.fill_hardware_into


def groups(fill: Callable[..., None], data: bytes, stream: int, group: int, n: int = 1) -> np.ndarray:
    """So many groups, written into an array whose other entries must stay as they are."""
    out = np.full(n * layout.GROUP_HALVES + 6, GUARD, np.uint32)
    fill(schedule_of(data), np.uint64(stream), group, out[2:-4])
    assert (out[:2] == GUARD).all()
    assert (out[-4:] == GUARD).all()
    return out[2:-4]


# --- FIPS 197 and SP 800-38A


@pytest.mark.parametrize("vector", **VECTORS)
def test_the_oracle_meets_the_vectors(vector: oracles.aes.Vector) -> None:
    assert oracles.aes.encrypted(vector.key, vector.block) == vector.result


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
@pytest.mark.parametrize("vector", **VECTORS)
def test_vectors(vector: oracles.aes.Vector, fill: Callable[..., None]) -> None:
    stream, block = (int.from_bytes(vector.block[i : i + 8], "big") for i in (0, 8))
    words = groups(fill, vector.key, stream, block // 64)
    assert words.astype("<u4").tobytes()[16 * (block % 64) :][:16] == vector.result


def test_the_round_keys() -> None:
    for data in (bytes(32), b"\xff" * 32, bytes(range(32)), RANDOM.randbytes(32)):
        assert schedule_of(data).astype("<u4").tobytes() == b"".join(oracles.aes.expanded_key(data))


def test_the_s_box() -> None:
    """All bytes in all places of a word, by software: what the vectors do not reach of it."""
    for byte, result in enumerate(oracles.aes.S_BOX):
        for place in range(4):
            rest = [RANDOM.randrange(256) for _ in range(4)]
            rest[place] = byte
            got = int(aes_software.substitute_software(np.uint32(int.from_bytes(rest, "little"))))
            assert got.to_bytes(4, "little") == bytes(oracles.aes.S_BOX[b] for b in rest)
            assert got >> 8 * place & 0xFF == result


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
def test_random_keys_and_counters_are_those_of_the_oracle(fill: Callable[..., None]) -> None:
    """Streams and groups of all lengths up to 64 and 57 bits, and the last group that there is."""
    at = [(RANDOM.getrandbits(bits), RANDOM.getrandbits(bits * 57 // 64)) for bits in (1, 7, 30, 50, 64)]
    for stream, group in [*at, (2**64 - 1, 2**57 - 1)]:
        data = RANDOM.randbytes(32)
        wanted = oracles.aes.group_half_words(key_of(data).tolist(), stream, group)
        assert groups(fill, data, stream, group).tolist() == wanted


def test_software_and_instructions_agree() -> None:
    if not BLOCK_LANES:
        return  # the vectors hold for software alone
    for n in (1, 2, 3, 17, 40):
        data, stream, group = RANDOM.randbytes(32), RANDOM.getrandbits(64), RANDOM.getrandbits(50)
        both = [groups(fill, data, stream, group, n) for fill in (aes.fill_hardware_into, FILLS["software"])]
        assert (both[0] == both[1]).all()


def test_openssl_agrees() -> None:
    if not (command := shutil.which("openssl")):
        return
    data, stream, group = RANDOM.randbytes(32), RANDOM.getrandbits(64), RANDOM.getrandbits(56)
    counter = (stream << 64 | group * 64).to_bytes(16, "big")
    words = groups(fill_groups_by_key, data, stream, group, 5).astype("<u4").tobytes()
    call = [command, "enc", "-aes-256-ctr", "-nopad", "-K", data.hex(), "-iv", counter.hex()]
    assert subprocess.run(call, input=bytes(len(words)), capture_output=True, check=True).stdout == words


def fill_groups_by_key(schedule: np.ndarray, stream: Any, group: int, out: np.ndarray) -> None:
    fill_groups_into(np.append(schedule[:8], np.uint32(layout.AES_MARK)), stream, group, out)


# --- the seam


def test_words_one_by_one_and_many_are_those_of_the_oracle() -> None:
    key = key_of(RANDOM.randbytes(32))
    word = oracles.words.words_of(key.tolist())
    for stream, first, n in ((0, 0, 3), (1, 127, 130), (3, 2**40 - 5, 300), (2**63 + 1, 2**63 - 300, 300)):
        out = np.zeros(n, np.uint64)
        number = stream if stream < 2**63 else np.uint64(stream)
        words_into(key, number, first, out)
        assert out.tolist() == [word(stream, first + i) for i in range(n)]
        for i in (0, n // 2, n - 1):
            assert int(word_one(key, number, first + i)) == out[i]


def test_half_a_group_is_the_first_half() -> None:
    """Of keys and round keys of AES, and of keys of ChaCha20."""
    data = RANDOM.randbytes(32)
    for key in (key_of(data), schedule_of(data), key_of(data)[: layout.CHACHA20_KEY].copy()):
        for stream, group in ((0, 0), (3, 8), (4, 2**40)):
            whole, half = np.zeros(256, np.uint32), np.zeros(128, np.uint32)
            fill_groups_into(key, stream, group, whole)
            fill_half_into(key, stream, group, half)
            assert half.tolist() == whole[:128].tolist()


def test_the_ninth_word_decides() -> None:
    """The same 256 bits without it are a key of ChaCha20: none of their words are the same."""
    key = key_of(RANDOM.randbytes(32))
    both = np.zeros((2, 1000), np.uint64)
    words_into(key, 0, 0, both[0])
    words_into(key[:8].copy(), 0, 0, both[1])
    assert not np.intersect1d(both[0], both[1]).size
    assert both[1].tolist() == oracles.words.stream_words(key[:8].tolist(), 0, 0, 1000).tolist()


# --- what the code is compiled for


HERE = """
import json
import numpy as np
import fastdp
from fastdp.kernels.aes_lanes import BLOCK_LANES
from fastdp.kernels.words import words_into
from fastdp.randomness.keys import origin_of
key = np.arange(1, 10, dtype=np.uint32)
key[8] = 0x36354541
out = np.zeros(300, np.uint64)
words_into(key, 5, 70, out)
here = origin_of(None)
print(json.dumps([BLOCK_LANES, out.tolist(), fastdp.Randomness().key().size, here.cipher]))
"""
TARGETS = [("x86-64", "", 0, ()), ("haswell", "+aes", 2, ("avx2", "aes")), ("x86-64-v3", "+aes,+vaes", 4, ("vaes",))]


@pytest.mark.parametrize(("name", "features", "lanes", "needed"), TARGETS)
def test_the_same_words_whatever_is_compiled_for(
    name: str, features: str, lanes: int, needed: tuple[str, ...], run_python: Callable[..., str]
) -> None:
    """A key that was sent to it means the same everywhere; without instructions, keys of its own are of ChaCha20."""
    if not X86 or not all(HOST.get(feature) for feature in needed):
        return
    found, words, size, cipher = json.loads(run_python(HERE, NUMBA_CPU_NAME=name, NUMBA_CPU_FEATURES=features))
    assert (found, size, cipher) == (lanes, 9 if lanes else 8, "AES-256-CTR" if lanes else "ChaCha20")
    key = [*range(1, 9), layout.AES_MARK]
    assert words == oracles.words.stream_words(key, 5, 70, 300).tolist()


def test_what_a_target_has() -> None:
    """A feature that is named decides, and a hypervisor's is named with a minus, whatever the processor is called."""
    if not X86:
        assert BLOCK_LANES == 0
        return
    for name, features, lanes in [
        ("haswell", "", 0), ("x86-64-v4", "", 0), ("a processor of next year", "", 0), ("generic", None, 0),
        ("x86-64", "+aes", 2), ("znver2", "", 2), ("skylake-avx512", "", 2), ("x86-64", "+aes,+vaes", 4),
        ("znver3", "", 4), ("x86-64-v3", "+aes,+vaes", 4), ("x86-64-v4", "+aes,+vaes", 8), ("icelake-server", "", 8),
        ("znver4", "+avx2,+avx512f,-aes,+vaes", 0), ("znver4", "+avx2,+avx512f,+aes,-vaes", 2),
        ("znver4", "+avx2,-avx512f,+aes,+vaes", 4), ("znver4", "-avx2,+aes,+vaes", 2),
        ("znver4", "+avx2,+avx512f,+aes,+vaes", 8),
    ]:  # fmt: skip
        assert lanes_of_target(name, features) == lanes, (name, features)


EMITTED = """
import llvmlite.binding as binding
binding.initialize_native_target()
binding.initialize_native_asmprinter()
for name, features, lanes in {targets}:
    suffix, kind = {{2: "", 4: ".256", 8: ".512"}}[lanes], f"<{{lanes}} x i64>"
    module = binding.parse_assembly(
        f"define {{kind}} @f({{kind}} %a) {{{{ %b = call {{kind}} @llvm.x86.aesni.aesenc{{suffix}}({{kind}} %a, "
        f"{{kind}} %a) ret {{kind}} %b }}}} declare {{kind}} @llvm.x86.aesni.aesenc{{suffix}}({{kind}}, {{kind}})"
    )
    machine = binding.Target.from_default_triple().create_target_machine(cpu=name, features=features)
    assert machine.emit_assembly(module).count("aesenc") == 1
print("all")
"""


def test_llvm_agrees_to_what_targets_have(run_python: Callable[..., str]) -> None:
    """It ends the process where it cannot say an instruction: every name and feature that is taken to have it."""
    if not X86:
        return
    names = [name for name in llvm_names() if lanes_of_target(name, "")]
    assert {"skylake", "znver2", "icelake-server", "znver4"} <= set(names)
    known = known_to_llvm()
    assert {"skylake", "znver2", "icelake-server"} <= known
    names = [name for name in names if name in known]
    targets = [(name, "", lanes_of_target(name, "")) for name in names]
    targets += [
        ("haswell", "+aes", 2),
        ("x86-64-v3", "+aes,+vaes", 4),
        ("x86-64-v4", "+aes,+vaes", 8),
        ("x86-64", "+aes,+vaes", 4),
    ]
    assert run_python(EMITTED.format(targets=targets)) == "all\n"


def known_to_llvm() -> set[str]:
    """The names that this LLVM lists when asked for help: the oldest that we allow has no znver4."""
    code = (
        "import llvmlite.binding as binding; binding.initialize_native_target(); "
        "binding.Target.from_default_triple().create_target_machine(cpu='help')"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1800, check=True).stderr
    return set(re.findall(r"^  (\S+) +- Select the \1 processor", told, re.M))


def llvm_names() -> list[str]:
    """Those of LLVM 15 and later that the table of names is about."""
    return [
        "skylake", "skylake-avx512", "cascadelake", "cooperlake", "cannonlake", "goldmont", "goldmont-plus", "tremont",
        "bdver1", "bdver4", "btver2", "znver1", "znver2", "znver3", "znver4", "icelake-client", "icelake-server",
        "rocketlake", "tigerlake", "alderlake", "raptorlake", "sapphirerapids", "haswell", "nehalem", "x86-64-v4",
    ]  # fmt: skip
