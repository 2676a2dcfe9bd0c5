"""What the kernels that draw must answer, asked of each when a process first loads or compiles it.

ChaCha20 answers with the vector of RFC 8439; noise and selection with fingerprints of their draws under the RFC's key,
which tests/kernels/test_known_answers.py holds against the definitions in integers. A kernel is asked in the form in
which it will be used (these argument types, this machine code), before anybody else can call it. A wrong answer raises
an error: nothing is released with it, and it is not written to disk. It takes 5 to 60 us for each kernel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple
from zlib import crc32

import numba.core.types
import numpy as np

from . import layout

_types: Any = numba.core.types
Call = Callable[..., Any]


class KnownAnswerError(RuntimeError):
    """A kernel computes something else than it must: a damaged or foreign file, a defect of processor or compiler."""


class _OtherForm(Exception):
    """The kernel was compiled for other types of arguments than those that it would be asked with."""


class _Answer(NamedTuple):
    """How one kernel is asked, what it must answer, with a key of AES too, and which of its arguments are scores."""

    ask: Callable[[Call, Any, Any], Any]
    wanted: Any
    by_aes: Any = None
    scores_at: int | None = None


# --- the questions

_STREAM, _GROUP = 0x4A000000, 0x0090_0000_0000_0000  # block 1 and nonce of the RFC's example, section 2.3.2
_RFC = (
    0xE4E7F110, 0x15593BD1, 0x1FDD0F50, 0xC47120A3, 0xC7F4D1C7, 0x0368C033, 0x9AAA2204, 0x4E6CD4C3,
    0x466482D2, 0x09AA9F07, 0x05D7C214, 0xA2028BD9, 0xD19C12B5, 0xB94E16DE, 0xE883D0CB, 0x4E3C50A2,
)  # fmt: skip

# FIPS 197, appendix C.3: the block 00112233445566778899aabbccddeeff under the same key, the last of its group here
_FIPS_AT = 0x0011223344556677, 0x8899AABBCCDDEEFF >> 6
_FIPS = bytes.fromhex("8ea2b7ca516745bfeafc49904b496089")
_SCHEDULE = bytes.fromhex(
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fa573c29fa176c498a97fce93a572c09c"
    "1651a8cd0244beda1a5da4c10640badeae87dff00ff11b68a68ed5fb03fc15676de1f1486fa54f9275f8eb5373b8518d"
    "c656827fc9a799176f294cec6cd5598b3de23a75524775e727bf9eb45407cf390bdc905fc27b0948ad5245a4c1871c2f"
    "45f5a66017b2d387300d4d33640a820a7ccff71cbeb4fe5413e6bbf0d261a7dff01afafee7a82979d7a5644ab3afe640"
    "2541fe719bf500258813bbd55a721c0a4e5a6699a9f24fe07e572baacdf8cdea24fc79ccbf0979e9371ac23c6d68de36"
)

# Laws of noise of scale 3, 2^20 and 2^33, with the bits beyond the first 31 that each takes: three loops a kernel
_LAPLACE = (
    (0, "1.8p+1 1.d58787a02f578p-2 -1.d42e84984cb42p-59 1.1p-49 1.8p-77"),
    (16, "1p+20 1.fffff8p-2 1.55555555553e9p-68 1.400008p-31 1p-58"),
    (32, "1p+33 1.ffffffffcp-2 1.5555555555555p-107 1.400000004p-18 1p-45"),
)
_GAUSSIAN = (
    (0, "1.8p+1 1.0f876ccdf6cd9p+1 1.1fa21253a086ap+0 1.c99764ee40526p-54 1.108631f3c81b4p+2 1.27d53adf29f5ep-52 "
        "1.c218c7cf206d1p+0 1.3ea9d6f94faecp-55 1.0f876ccdf6cdap+2 1.c71c71c71c71cp-5 1.0aa4844486ae9p-46 "
        "1.32376e4412a18p+2 1.000025a82799ap-31 1.ad413cccfe77ap-50 1.fc5091bc2df04p-75"),
    (16, "1.6a0ap+19 1.6a09e667f3bccp+19 1.bc5f0f307755p+17 -1.4f383f1681c6bp-37 1.6a09e667f3bep+20 "
         "-1.d2ab0e7fd105p-34 1.6a09dccfe77bfp+19 1.6aa78c0177d8p-37 1.6a09e667f3bcdp+20 1p-41 1.369db1273f69dp-28 "
         "1.974b2334f2354p+20 1.000025a82799ap-31 1.ad413cccfe77ap-50 1.2b4d60f3ffcbep-56"),
    (32, "1.6a09e668p+32 1.6a09e667f3bccp+32 1.bc5ecf3277d26p+30 1.db39856c00559p-24 1.6a09e667f3bcdp+33 "
         "-1.bdd1e299d6067p-21 1.6a09e66867799p+32 1.08b87598a7e64p-23 1.6a09e667f3bcdp+33 1p-67 1.369da8f467711p-15 "
         "1.974b2334f2346p+33 1.000025a82799ap-31 1.ad413cccfe77ap-50 1.2b4d59c11fd32p-43"),
)  # fmt: skip
_BLOCK, _ENTRIES, _GRID = 3, (40, 104), 0.25  # of a short call, and of one that is none: of lanes and their rest

_ETA, _TOP, _CANDIDATES = 0.125, 24, 41
_FACTOR, _LEVELS = 0.18, 56.0  # of buckets: below eta / ln 2


def _key() -> Any:
    return np.arange(32, dtype=np.uint8).view(np.uint32)  # the RFC's, and that of FIPS 197


def _aes_key() -> Any:
    return np.append(_key(), np.uint32(layout.AES_MARK))


def _print(*arrays: Any) -> int:
    return crc32(b"".join(array.tobytes() for array in arrays))


def _ask_groups(call: Call, kind: Any, key: Any) -> Any:
    out = np.zeros(256, np.uint32)
    call(key, _STREAM, _GROUP, out)
    return tuple(out[1::16].tolist()), _print(out)


def _ask_words(call: Call, kind: Any, key: Any) -> Any:
    out = np.zeros(133, np.uint64)  # a whole group and a part of the next
    call(key, _STREAM, _GROUP * 128, out)
    return tuple((out[:128:8] >> np.uint64(32)).tolist()), _print(out)


def _ask_word(call: Call, kind: Any, key: Any) -> Any:
    return tuple(int(call(key, _STREAM, _GROUP * 128 + 8 * p)) >> 32 for p in (0, 15))


def _ask_noise(call: Call, key: Any, laws: Any, values: Any, *grid: float) -> Any:
    answers = []
    for extra, law in laws:
        numbers = np.array([float.fromhex(number) for number in law.split()])
        for n in _ENTRIES:
            out, undecided = np.zeros_like(values[:n]), np.zeros(n, np.int64)
            found = call(values[:n], *grid, key, _BLOCK, extra, numbers, out, undecided)
            answers.append((found, _print(out)))
    return tuple(answers)


def _ask_few(call: Call, key: Any, laws: Any, values: Any, grid: float = 1.0) -> Any:
    answers = []
    for extra, law in laws:
        out = values[: _ENTRIES[0]].copy()
        numbers = np.array([grid, extra, *(float.fromhex(number) for number in law.split())])
        answers.append((call(out, key.tobytes(), numbers), _print(out)))
    return tuple(answers)


def _integers() -> Any:
    return np.arange(_ENTRIES[-1]) * 1000


def _floats() -> Any:
    return np.arange(_ENTRIES[-1]) * 1.375


def _scores(kind: Any) -> Any:
    return (np.arange(_CANDIDATES) * 29 % 25).astype(kind)  # from 0 to 24


def _ask_tops(call: Call, kind: Any, key: Any) -> Any:
    tops = np.zeros(1, kind)
    return call(_scores(kind), tops), tops[0]


def _ask_weights(call: Call, kind: Any, key: Any) -> Any:
    tops, weights = np.zeros(1, kind), np.zeros(1, np.uint64)
    call(_scores(kind), _FACTOR, _LEVELS, tops, weights)
    return tops[0], int(weights[0])


_WEIGHT = 1283525893800591360  # of the scores, all together


def _ask_proposals(call: Call, kind: Any, key: Any) -> Any:
    proposals = np.zeros((4, 9), np.uint64)
    sums = np.array([[_WEIGHT], [0]], np.uint64)
    following = call(key, 5, np.array([_TOP], kind), _TOP, _FACTOR, sums, proposals)
    return following, _print(proposals)


def _ask_outcomes(call: Call, kind: Any, key: Any) -> Any:
    proposals, outcomes = np.zeros((4, 9), np.uint64), np.zeros((3, 9), np.int64)
    proposals[layout.PROPOSED_REST] = np.arange(9, dtype=np.uint64) * np.uint64(_WEIGHT // 9)
    proposals[layout.PROPOSED_COIN] = np.arange(9, dtype=np.uint64) << np.uint64(60)
    tops = np.array([_TOP], kind)
    call(_scores(kind), _ETA, _FACTOR, _LEVELS, tops, _TOP, proposals, False, layout.SLACK, outcomes)
    return _print(outcomes)


def _ask_arrivals(call: Call, kind: Any, key: Any) -> Any:
    heap, indices, times = np.full(2, np.inf), np.zeros(64, np.int64), np.zeros((2, 64))
    tops = np.array([_TOP], kind)
    found = call(_scores(kind), 7, key, _ETA, tops, _TOP, layout.SLACK, heap, indices, times)
    return found, _print(heap, indices, times)


def _ask_first(call: Call, kind: Any, key: Any) -> Any:
    return tuple(call(_scores(kind), key, eta, layout.SLACK) for eta in (0.001, _ETA))


def _ask_heads(call: Call, kind: Any, key: Any) -> Any:
    counts, undecided = np.zeros(1, np.int64), np.zeros(8, np.int64)
    found = call(_scores(kind), 7, key, _ETA, _TOP, layout.SLACK, counts, undecided)
    return found, int(counts[0])


def _ask_flags(call: Call, kind: Any, key: Any) -> Any:
    flags = np.zeros(_CANDIDATES)
    call(_scores(kind), 7, key, _ETA, _TOP, layout.SLACK, flags)
    return _print(flags)


def _ask_state(call: Call, kind: Any, key: Any) -> Any:
    state = np.zeros(9 + 1024, np.uint64)
    state[:4], state[5] = key[:8].view(np.uint64), 1024  # the buffer counts as used up
    state[8] = key[8] if key.size > 8 else 0
    return call(state), _print(state)


def _ask_schedule(call: Call, kind: Any, key: Any) -> Any:
    schedule = np.zeros(60, np.uint32)
    call(key, schedule)
    return schedule.tobytes()


def _ask_blocks(call: Call, kind: Any, key: Any) -> Any:
    out = np.zeros(256, np.uint32)
    call(np.frombuffer(bytearray(_SCHEDULE), np.uint32), *_FIPS_AT, out)
    return out[-4:].tobytes(), _print(out)


def _ask_either(call: Call, kind: Any, key: Any) -> Any:
    if key.size == 8:
        return _ask_groups(call, kind, key)
    return _ask_blocks(lambda _, *rest: call(key, *rest), kind, key)


def _ask_pointer_words(call: Call, kind: Any, key: Any) -> Any:
    return _ask_words(lambda key, stream, first, out: call(key, stream, first, out.size, out), kind, key)


def _ask_pointer_noise(call: Call, key: Any, laws: Any, values: Any, *grid: float) -> Any:
    """As the kernel is asked: its numbers as a plan."""

    def inner(values: Any, *rest: Any) -> int:
        *_, key, block, extra, law, out, undecided = rest
        plan = [extra, *law, *(grid or (0,))] if laws is _LAPLACE else [extra, 1, *(grid or (0,)), *law]
        return int(call(values, values.size, key, block, np.array(plan, np.float64), out, undecided))

    return _ask_noise(inner, key, laws, values, *grid)


# --- the answers

_WORDS = (_RFC, 1872678935)
_LAPLACE_I = ((0, 3300406097), (0, 2121483559), (0, 773878147), (0, 2315618029), (0, 724446685), (0, 1081813757))
_LAPLACE_FEW_I = ((0, 1690472302), (0, 2886728497), (0, 3216987888))
_LAPLACE_F = ((0, 1949963850), (0, 4254242453), (0, 1107724080), (0, 4084815997), (0, 3402746674), (0, 3836738858))
_LAPLACE_FEW_F = ((0, 1758481115), (0, 244026228), (0, 1227944962))
_GAUSSIAN_I = ((0, 95411776), (0, 3881172824), (0, 161471939), (0, 1647260628), (0, 1639195468), (0, 3282476709))
_GAUSSIAN_FEW_I = ((0, 1449117436), (0, 242870807), (0, 1573931684))
_GAUSSIAN_F = ((0, 2893941032), (0, 570022717), (0, 181393462), (0, 428433922), (0, 4193208285), (0, 4011638037))
_GAUSSIAN_FEW_F = ((0, 3958366627), (0, 1122356960), (0, 2677085934))

_CTR = (b"\x8e\xa2\xb7\xcaQgE\xbf\xea\xfcI\x90KI`\x89", 1883346581)
_AES_WORDS = (
    (
        1082945504,
        3489150945,
        1781487996,
        1232573279,
        2928594367,
        3788402561,
        1960340294,
        3549109973,
        1711993362,
        2909286598,
        3608699086,
        62666566,
        3970767822,
        3813247288,
        2725911778,
        2796811041,
    ),
    291197840,
)
_AES_WORD = (1082945504, 2796811041)
_LAPLACE_I_AES = ((0, 3715401881), (0, 3387745371), (0, 3089724423), (0, 2121436706), (0, 1936167538), (0, 758070920))
_LAPLACE_FEW_I_AES = ((0, 736886107), (0, 1127301038), (0, 4278752981))
_LAPLACE_F_AES = ((0, 2830355025), (0, 1217969687), (0, 1448815109), (0, 2890024369), (0, 789723590), (0, 880299384))
_LAPLACE_FEW_F_AES = ((0, 1114610520), (0, 1214519406), (0, 3203279796))
_GAUSSIAN_I_AES = ((0, 3685524348), (0, 2167823198), (0, 3389301538), (0, 2481593461), (0, 2166060541), (0, 422730171))
_GAUSSIAN_FEW_I_AES = ((0, 2965222864), (0, 2108632922), (0, 1114615562))
_GAUSSIAN_F_AES = ((0, 1512866546), (0, 2312616600), (0, 1676153702), (0, 2594486831), (0, 2946794240), (0, 380198249))
_GAUSSIAN_FEW_F_AES = ((0, 2031304034), (0, 1046374397), (0, 4088760087))
_PROPOSALS_AES = (22, 1319554465)
_ARRIVALS_AES = (2, 953714526)
_HEADS_AES = (0, 12)
_FLAGS_AES = 416624839
_NEXT_64_AES = (15032814528976949490, 3757448706)
_NEXT_32_AES = (3053490418, 4287401706)
_NEXT_DOUBLE_AES = (0.8149305085444232, 3757448706)

ANSWERS: dict[str, _Answer] = {
    "chacha20_blocks.fill_chacha20_into": _Answer(_ask_groups, (_RFC, 3173066661)),
    "aes.expand_key_into": _Answer(_ask_schedule, _SCHEDULE),
    "aes.fill_hardware_into": _Answer(_ask_blocks, _CTR),
    "aes_software.fill_software_into": _Answer(_ask_blocks, _CTR),
    "words.fill_groups_into": _Answer(_ask_either, (_RFC, 3173066661), _CTR),
    "words.words_into": _Answer(_ask_words, _WORDS, _AES_WORDS),
    "words.word_one": _Answer(_ask_word, (_RFC[0], _RFC[15]), _AES_WORD),
    "noise.add_laplace_into": _Answer(
        lambda call, _, key: _ask_noise(call, key, _LAPLACE, _integers()), _LAPLACE_I, _LAPLACE_I_AES
    ),
    "noise.add_laplace_on_grid_into": _Answer(
        lambda call, _, key: _ask_noise(call, key, _LAPLACE, _floats(), _GRID), _LAPLACE_F, _LAPLACE_F_AES
    ),
    "noise.add_gaussian_into": _Answer(
        lambda call, _, key: _ask_noise(call, key, _GAUSSIAN, _integers()), _GAUSSIAN_I, _GAUSSIAN_I_AES
    ),
    "noise.add_gaussian_on_grid_into": _Answer(
        lambda call, _, key: _ask_noise(call, key, _GAUSSIAN, _floats(), _GRID), _GAUSSIAN_F, _GAUSSIAN_F_AES
    ),
    "noise.add_laplace_to_few": _Answer(
        lambda call, _, key: _ask_few(call, key, _LAPLACE, _integers()), _LAPLACE_FEW_I, _LAPLACE_FEW_I_AES
    ),
    "noise.add_laplace_to_few_on_grid": _Answer(
        lambda call, _, key: _ask_few(call, key, _LAPLACE, _floats(), _GRID), _LAPLACE_FEW_F, _LAPLACE_FEW_F_AES
    ),
    "noise.add_gaussian_to_few": _Answer(
        lambda call, _, key: _ask_few(call, key, _GAUSSIAN, _integers()), _GAUSSIAN_FEW_I, _GAUSSIAN_FEW_I_AES
    ),
    "noise.add_gaussian_to_few_on_grid": _Answer(
        lambda call, _, key: _ask_few(call, key, _GAUSSIAN, _floats(), _GRID), _GAUSSIAN_FEW_F, _GAUSSIAN_FEW_F_AES
    ),
    "scores.find_tops_into": _Answer(_ask_tops, (_TOP, _TOP), None, 0),
    "buckets.sum_blocks_into": _Answer(_ask_weights, (_TOP, _WEIGHT), None, 0),
    "buckets.propose_into": _Answer(_ask_proposals, (24, 1814395598), _PROPOSALS_AES, 2),
    "buckets.resolve_into": _Answer(_ask_outcomes, 836060989, None, 0),
    "gumbel_max.select_gumbel_into": _Answer(_ask_arrivals, (2, 2554182963), _ARRIVALS_AES, 0),
    "gumbel_max.choose_gumbel": _Answer(_ask_first, (23, 24), (17, 17), 0),
    "permute_and_flip.count_heads_into": _Answer(_ask_heads, (0, 9), _HEADS_AES, 0),
    "permute_and_flip.choose_head": _Answer(_ask_first, (13, 15), (14, 22), 0),
    "permute_and_flip.mark_heads_into": _Answer(_ask_flags, 735641966, _FLAGS_AES, 0),
}

CALLBACK_ANSWERS: dict[str, _Answer] = {
    "bit_generator.next_uint64": _Answer(_ask_state, (3549601871640132921, 3727142683), _NEXT_64_AES),
    "bit_generator.next_uint32": _Answer(_ask_state, (2100034873, 2651027794), _NEXT_32_AES),
    "bit_generator.next_double": _Answer(_ask_state, (0.19242430303454217, 3727142683), _NEXT_DOUBLE_AES),
    "function_pointers.words": _Answer(_ask_pointer_words, _WORDS),
    "function_pointers.laplace_i64": _Answer(
        lambda call, _, key: _ask_pointer_noise(call, key, _LAPLACE, _integers()), _LAPLACE_I
    ),
    "function_pointers.laplace_f64": _Answer(
        lambda call, _, key: _ask_pointer_noise(call, key, _LAPLACE, _floats(), _GRID), _LAPLACE_F
    ),
    "function_pointers.gaussian_i64": _Answer(
        lambda call, _, key: _ask_pointer_noise(call, key, _GAUSSIAN, _integers()), _GAUSSIAN_I
    ),
    "function_pointers.gaussian_f64": _Answer(
        lambda call, _, key: _ask_pointer_noise(call, key, _GAUSSIAN, _floats(), _GRID), _GAUSSIAN_F
    ),
}


# --- asking


def ask_kernel(name: str, types: tuple[Any, ...], call: Call, where: str) -> None:
    """Ask a kernel that was compiled for arguments of these types; no question is stated for other types than ours.

    name    of module and kernel;   where    its machine code comes from: for the message
    """
    if (answer := ANSWERS.get(name)) is None:
        return

    def checked(*arguments: Any) -> Any:
        """The machine code looks at nothing: whatever it is given must be what it was compiled for."""
        if len(arguments) != len(types):
            raise _OtherForm
        given = [_in_form(argument, kind) for argument, kind in zip(arguments, types, strict=True)]
        result = call(*given)
        for copy, argument in zip(given, arguments, strict=True):
            if copy is not argument:
                argument[:] = copy
        return result

    kind = None if answer.scores_at is None else str(getattr(types[answer.scores_at], "dtype", ""))
    if kind in (None, "int64", "float64"):
        _compare(name, answer, checked, kind, where)


def _in_form(argument: Any, kind: Any) -> Any:
    """An argument as the type wants it: arrays of rows in Fortran's order are copies."""
    if isinstance(argument, np.ndarray):
        if type(kind) is _types.Array and (str(kind.dtype), kind.ndim) == (str(argument.dtype), argument.ndim):
            return np.asfortranarray(argument) if kind.layout == "F" and kind.ndim > 1 else argument
    elif isinstance(argument, bytes):
        if type(kind) is _types.Bytes:
            return argument
    elif str(kind) == "float64" or (isinstance(argument, int) and type(kind) in (_types.Integer, _types.Boolean)):
        return argument
    raise _OtherForm


def ask_callback(name: str, call: Callable[..., Any], where: str) -> None:
    """Ask a C function, given as ctypes calls it."""
    if (answer := CALLBACK_ANSWERS.get(name)) is not None:

        def by_pointers(*arguments: Any) -> Any:
            given = zip(arguments, call.argtypes, strict=True)  # type: ignore[attr-defined]
            return call(*[ctypes.cast(a.ctypes.data, t) if isinstance(a, np.ndarray) else a for a, t in given])

        _compare(name, answer, by_pointers, None, where)


def _compare(name: str, answer: _Answer, call: Call, kind: Any, where: str) -> None:
    try:
        right = answer.ask(call, kind, _key()) == answer.wanted
        if right and answer.by_aes is not None:
            right = answer.ask(call, kind, _aes_key()) == answer.by_aes
    except _OtherForm:
        return
    except MemoryError:  # no answer yet
        raise
    except Exception:
        right = False
    if not right:
        raise KnownAnswerError(
            f"fastdp.kernels.{name}: its known answer came out wrong, and nothing is released with it. It comes from "
            f"{where}: remove that, and where the answer stays wrong trust nothing that this machine computes"
        )
