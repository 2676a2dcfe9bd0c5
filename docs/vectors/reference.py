"""What fastdp draws and charges, once more and small: from the standard library alone, and slow.

`python reference.py` checks the files `*-vectors.json` beside it. Nothing here is taken from fastdp; whoever writes
another implementation may take anything. Which bits decide what stands in fastdp/mechanisms/noise.md and selection.md,
section "Bits". Every decision is taken between two bounds, from as many bits as it needs.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import ceil, floor, inf, nextafter, sqrt
from pathlib import Path
from typing import Any

MASK = 0xFFFFFFFF
Words = Callable[[int, int], int]  # (stream, index) -> 64 bits
Vector = dict[str, Any]
Bits = Iterator[tuple[int, int]]  # (N, b): the number lies in [N, N + 1] / 2^b; the next pair has more bits


# --- words: ChaCha20 (RFC 8439), sixteen blocks at a time, word by word; AES-256 in counter mode (FIPS 197)


def seeded_key(seed: int, release: int) -> bytes:
    return hashlib.sha256(f"fastdp {seed} {release}".encode()).digest()


def chacha20_block(key: bytes, counter: int, nonce: tuple[int, int, int]) -> list[int]:
    def quarter(a: int, b: int, c: int, d: int) -> None:
        for into, plus, mixed, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[into] = (x[into] + x[plus]) & MASK
            y = x[mixed] ^ x[into]
            x[mixed] = (y << turn | y >> (32 - turn)) & MASK

    words = [int.from_bytes(key[i : i + 4], "little") for i in range(0, 32, 4)]
    state = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *words, counter, *nonce]
    x = list(state)
    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return [(after + before) & MASK for after, before in zip(x, state, strict=True)]


def chacha20_words(key: bytes) -> Words:
    """32-bit word j of a stream is state word j % 256 // 16 of block 16 (j // 256) + j % 16."""
    blocks: dict[tuple[int, int], list[int]] = {}

    def half(stream: int, j: int) -> int:
        block = 16 * (j // 256) + j % 16
        if (stream, block) not in blocks:
            nonce = (block >> 32, stream & MASK, stream >> 32)
            blocks[stream, block] = chacha20_block(key, block & MASK, nonce)
        return blocks[stream, block][j % 256 // 16]

    return lambda stream, i: half(stream, 2 * i) | half(stream, 2 * i + 1) << 32


def doubled(a: int) -> int:
    """Twice a byte, in the field of AES."""
    return a << 1 ^ 0x11B * (a >> 7)


def s_box() -> list[int]:
    """Powers of 3 and of its inverse run through the field side by side; the affine map comes after the inverse."""
    box, power, inverse = [0x63] * 256, 1, 1
    for _ in range(255):
        power ^= doubled(power)
        for shift in (1, 2, 4):  # divided by 3
            inverse ^= inverse << shift & 0xFF
        inverse ^= 9 * (inverse >> 7)
        bits = inverse * 0x101
        box[power] = (bits ^ bits >> 4 ^ bits >> 5 ^ bits >> 6 ^ bits >> 7 ^ 0x63) & 0xFF
    return box


S_BOX = s_box()


def aes256_round_keys(key: bytes) -> list[bytes]:
    words, constant = [key[i : i + 4] for i in range(0, 32, 4)], 1
    for i in range(8, 60):
        last = words[-1]
        if i % 4 == 0:
            last = bytes(S_BOX[byte] for byte in (last if i % 8 else last[1:] + last[:1]))
        if i % 8 == 0:
            last, constant = bytes([last[0] ^ constant]) + last[1:], doubled(constant)
        words.append(bytes(a ^ b for a, b in zip(words[i - 8], last, strict=True)))
    return [b"".join(words[i : i + 4]) for i in range(0, 60, 4)]


def aes256_block(round_keys: list[bytes], block: bytes) -> bytes:
    state = bytes(a ^ b for a, b in zip(block, round_keys[0], strict=True))
    for number, round_key in enumerate(round_keys[1:], 1):
        state = bytes(S_BOX[state[5 * i % 16]] for i in range(16))  # row r turns by r columns
        if number < 14:
            columns = [state[i : i + 4] for i in range(0, 16, 4)]
            mixed = [c[r] ^ doubled(c[r] ^ c[(r + 1) % 4]) for c in columns for r in range(4)]
            state = bytes(m ^ c[0] ^ c[1] ^ c[2] ^ c[3] for i, m in enumerate(mixed) for c in [columns[i // 4]])
        state = bytes(a ^ b for a, b in zip(state, round_key, strict=True))
    return state


def aes256_words(key: bytes) -> Words:
    """Words 2 b and 2 b + 1 of stream s are the encryption of the 16 bytes that s and b are, highest first."""
    round_keys = aes256_round_keys(key)

    def word(stream: int, i: int) -> int:
        block = aes256_block(round_keys, (stream << 64 | i // 2).to_bytes(16, "big"))
        return int.from_bytes(block[i % 2 * 8 :][:8], "little")

    return word


CIPHERS: dict[str, Callable[[bytes], Words]] = {"chacha20": chacha20_words, "aes-256-ctr": aes256_words}


def small_word(words: Words, stream: int, i: int, width: int) -> int:
    """Word i of a stream that is read in words of so many bits, low bits first."""
    return words(stream, i * width // 64) >> i * width % 64 & (1 << width) - 1


def more(words: Words, stream: int, i: int, n: int = 0, b: int = 0) -> Bits:
    """The bits so far, then word i of this stream and of every second one after it."""
    while True:
        if b:
            yield n, b
        n, b, stream = n << 64 | words(stream, i), b + 64, stream + 2


# --- decisions between bounds


class Exact:
    """Decimal arithmetic of so many digits; `margin` is far above what its roundings add up to."""

    def __init__(self, digits: int) -> None:
        self.context = Context(prec=digits, Emin=-(10**9), Emax=10**9)
        self.margin = Decimal(10) ** (10 - digits)

    def of(self, x: Fraction | int) -> Decimal:
        x = Fraction(x)
        return self.context.divide(Decimal(x.numerator), Decimal(x.denominator))

    def exp(self, x: Fraction) -> Decimal:
        return self.context.exp(self.of(x))

    def ln(self, x: Decimal) -> Decimal:
        return self.context.ln(x)

    def floor(self, x: Decimal) -> int | None:
        """floor(x), where the margin leaves no doubt."""
        slack = self.margin * (1 + abs(x))
        low, high = self.context.subtract(x, slack), self.context.add(x, slack)
        return floor(low) if floor(low) == floor(high) else None


def first_decided(bits: Bits, decide: Callable[[Fraction, Fraction, Exact], int | bool | None]) -> int:
    """What the first prefix decides that decides anything; `decide` gets the ends of the interval."""
    for n, b in bits:
        found = decide(Fraction(n, 2**b), Fraction(n + 1, 2**b), Exact(60 + b))
        if found is not None:
            return found
    raise AssertionError("bits never end")


def below_exp(bits: Bits, exponent: Fraction, doublings: int = 0) -> bool:
    """Whether the number is at most 2^doublings e^exponent, which is at most 1."""
    if exponent == 0 and doublings == 0:
        return True

    def decide(low: Fraction, high: Fraction, exact: Exact) -> bool | None:
        if exponent < -(10**7):  # below any interval that does not begin at 0
            return False if low > 0 else None
        bound = exact.context.multiply(exact.exp(exponent), Decimal(2**doublings))
        slack = bound * exact.margin
        if exact.of(high) + slack <= bound:
            return True
        return False if exact.of(low) - slack >= bound else None

    return bool(first_decided(bits, decide))


# --- noise: fastdp/mechanisms/noise.md


def first_bits(words: Words, i: int, scale: float) -> tuple[Bits, int]:
    """U of draw i, and its sign: 31 bits and a sign of stream 0, 16 or 32 bits of stream 1, then streams 3, 5, ..."""
    word = small_word(words, 0, i, 32)
    extra = 0 if scale <= 2.0**15 else 16 if scale <= 2.0**31 else 32
    prefix = word >> 1
    if extra:
        prefix = prefix << extra | small_word(words, 1, i, extra)
    return more(words, 3, i, prefix, 31 + extra), word & 1


def inverted(bits: Bits, scale: float, factor: Callable[[Exact], Decimal]) -> int:
    """floor(-scale ln(U factor))."""

    def decide(low: Fraction, high: Fraction, exact: Exact) -> int | None:
        if low == 0:
            return None

        def at(u: Fraction) -> int | None:
            logarithm = exact.ln(exact.context.multiply(exact.of(u), factor(exact)))
            return exact.floor(exact.context.multiply(Decimal(-scale), logarithm))

        return at(low) if at(low) == at(high) else None

    return first_decided(bits, decide)


def laplace_draw(words: Words, i: int, scale: float) -> int:
    bits, sign = first_bits(words, i, scale)
    size = inverted(bits, scale, lambda exact: (1 + exact.exp(-1 / Fraction(scale))) / 2)
    return -size if sign else size


def geometric_draw(words: Words, i: int, scale: float) -> int:
    return inverted(first_bits(words, i, scale)[0], scale, lambda exact: Decimal(1))


def gaussian_draws(words: Words, block: int, count: int, sigma: float) -> list[int]:
    """The first draws of a block, of 2,208 at most: its accepted proposals."""
    peak = max(sqrt(2) * sigma, 1.0)
    t, a, variance = Fraction(sigma * sigma / peak), ceil(peak / 2), Fraction(sigma) ** 2

    def propose(low: Fraction, high: Fraction, exact: Exact) -> int | None:
        if low == 0:
            return None
        c = exact.context
        tail = c.divide(exact.exp(variance / (2 * t**2) - a / t), 1 - exact.exp(-1 / t))
        mass = c.add(exact.of(a - Fraction(1, 2)), tail)

        def at(u: Fraction) -> Decimal:
            r = c.multiply(exact.of(u), mass)
            if r < tail:
                return c.subtract(Decimal(a), c.multiply(exact.of(t), exact.ln(c.divide(r, tail))))
            return c.subtract(c.add(Decimal(a), tail), r)

        return exact.floor(at(low)) if exact.floor(at(low)) == exact.floor(at(high)) else None

    draws: list[int] = []
    i = block << 20
    while len(draws) < count:
        bits, sign = first_bits(words, i, sigma)
        size = first_decided(bits, propose)
        coin = more(words, 4, i, small_word(words, 2, i, 16), 16)
        offset = size - (variance / t if size >= a else 0)
        if below_exp(coin, -(offset**2) / (2 * variance)):
            draws.append(-size if sign else size)
        i += 1
    return draws


# --- choices: fastdp/mechanisms/selection.md


def candidate(words: Words, i: int) -> Bits:
    return more(words, 1, i, small_word(words, 0, i, 32), 32)


def gaps(scores: list[float], eta: float) -> dict[int, Fraction]:
    """eta times how far each score is below the largest; -inf takes no part."""
    top = Fraction(max(scores))
    return {i: Fraction(eta) * (top - Fraction(s)) for i, s in enumerate(scores) if s != -inf}


def first_arrivals(words: Words, scores: list[float], eta: float, k: int) -> list[int]:
    """Gumbel-max: candidate i arrives at -ln(1 - x_i) e^(gap_i)."""
    gap = gaps(scores, eta)

    def arrival(i: int, digits: int) -> tuple[Decimal, Decimal]:
        for n, b in candidate(words, i):
            if b > 4 * digits and 0 < n < 2**b - 1:
                break
        exact = Exact(60 + b)
        ends = [exact.ln(-exact.ln(exact.of(1 - Fraction(n + more_bits, 2**b)))) for more_bits in (0, 1)]
        slack = exact.margin * (1 + abs(ends[0]) + abs(exact.of(gap[i])))
        return (ends[0] + exact.of(gap[i]) - slack, ends[1] + exact.of(gap[i]) + slack)

    chosen: list[int] = []
    while len(chosen) < k:
        digits, left = 15, {i for i in gap if i not in chosen}
        while len(left) > 1:
            times = {i: arrival(i, digits) for i in left}
            earliest = min(end for _, end in times.values())
            left = {i for i in left if times[i][0] <= earliest}
            digits *= 2
        chosen.append(left.pop())
    return chosen


def chosen_head(words: Words, scores: list[float], eta: float) -> int:
    """Permute-and-flip: one of the candidates whose coin, of probability e^(-gap), shows heads."""
    heads = [i for i, gap in gaps(scores, eta).items() if below_exp(candidate(words, i), -gap)]

    def decide(low: Fraction, high: Fraction, exact: Exact) -> int | None:
        first, last = floor(low * len(heads)), ceil(high * len(heads)) - 1
        return first if first == last else None

    return heads[first_decided(more(words, 2, 0), decide)]


def level_height(distance: Fraction, factor: float, levels: int) -> int:
    """Lemma 1, rounding for rounding; the product and the sum are one fma."""
    try:
        rounded = float(distance)
    except OverflowError:
        return 0
    z = float(levels + Fraction(1, 2) - Fraction(1, 2**44) - Fraction(rounded) * Fraction(factor))
    return round(Fraction(max(z, 0.0)))


def choice_by_buckets(words: Words, scores: list[float], eta: float, factor: float, count: int) -> list[int]:
    """Candidates are proposed in proportion to a power of two above their weight, and kept by a coin."""
    levels, gap = 62 - (len(scores) - 1).bit_length(), gaps(scores, eta)
    shift, weights = [], []
    for start in range(0, len(scores), 2048):
        block = scores[start : start + 2048]
        top = max(block)
        shift.append(level_height(Fraction(max(scores)) - Fraction(top), factor, 64) if top != -inf else 0)
        weights.append(
            [1 << (level_height(Fraction(top) - Fraction(s), factor, levels) if s != -inf else 0) for s in block]
            if top != -inf
            else [0] * len(block)
        )
    total = sum(sum(block) << by for block, by in zip(weights, shift, strict=True))
    chosen: list[int] = []
    t = -1
    while len(chosen) < count:
        t += 1
        rest = (words(0, 2 * t) & (1 << (total >> 64).bit_length()) - 1) << 64 | words(0, 2 * t + 1)
        if rest >= total:
            continue
        b = 0
        while rest >= sum(weights[b]) << shift[b]:
            rest -= sum(weights[b]) << shift[b]
            b += 1
        rest, j = rest >> shift[b], 0
        while rest >= weights[b][j]:
            rest, j = rest - weights[b][j], j + 1
        i, level = 2048 * b + j, levels + 1 - weights[b][j].bit_length() + 64 - shift[b]
        if i in gap and below_exp(more(words, 1, t), -gap[i], level):
            chosen.append(i)
    return chosen


# --- scales and prices: never below the formula, and here the least float that is not


def least_float(x: Fraction | Decimal) -> float:
    """The least float64 that is not below x."""
    nearest = float(x)
    if Fraction(nearest) >= Fraction(x):
        return nearest
    return nextafter(nearest, inf)


_UP = Context(prec=80, rounding=ROUND_CEILING)


def laplace_scale(sensitivity: float, epsilon: float) -> float:
    return least_float(Fraction(sensitivity) / Fraction(epsilon))


def zcdp_sigma(sensitivity: float, rho: float) -> float:
    """sensitivity / sqrt(2 rho)."""
    return least_float(_UP.sqrt(_UP.divide(Decimal(sensitivity) ** 2, 2 * Decimal(rho))))


def rho_of_pure(epsilon: float) -> float:
    """epsilon tanh(epsilon / 2)."""
    grown = Context(prec=80).exp(Decimal(epsilon))
    return least_float(_UP.multiply(Decimal(epsilon), _UP.divide(grown - 1, grown + 1)))


def rho_of_range(eta: float) -> float:
    """r - 1 - ln r, r = eta / (e^eta - 1)."""
    c = Context(prec=80)
    r = c.divide(Decimal(eta), c.subtract(c.exp(Decimal(eta)), 1))
    return least_float(c.subtract(c.subtract(r, 1), c.ln(r)))


def normal_tail(x: Decimal) -> Decimal:
    """Pr[N(0, 1) > x], by its series, in 120 digits."""
    c = Context(prec=120)
    term = total = x
    k = 0
    while abs(term) > Decimal("1e-110"):
        k += 1
        term = c.divide(c.multiply(term, c.multiply(x, x)), Decimal(2 * k + 1))
        total = c.add(total, term)
    density = c.divide(c.exp(c.divide(c.multiply(x, x), Decimal(-2))), c.sqrt(c.multiply(2, PI)))
    return c.subtract(Decimal("0.5"), c.multiply(total, density))


PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651"
)


def gaussian_delta(mu: Decimal, epsilon: Decimal) -> Decimal:
    """The delta of mu-Gaussian DP at epsilon (Balle and Wang 2018)."""
    c = Context(prec=100)
    shift = c.divide(epsilon, mu)
    return c.subtract(
        normal_tail(c.subtract(shift, c.divide(mu, 2))),
        c.multiply(c.exp(epsilon), normal_tail(c.add(shift, c.divide(mu, 2)))),
    )


def zcdp_epsilon(rho: float, delta: float) -> Decimal:
    """The least over orders a of a rho + ln((a-1)/a) - (ln delta + ln a) / (a-1), to some 20 digits."""
    c = Context(prec=60)

    def at(log_a1: Decimal) -> Decimal:
        a1 = c.exp(log_a1)
        a = c.add(a1, 1)
        rest = c.divide(c.add(c.ln(Decimal(delta)), c.ln(a)), a1)
        return c.subtract(c.add(c.multiply(a, Decimal(rho)), c.ln(c.divide(a1, a))), rest)

    low, high = Decimal(-30), Decimal(60)
    for _ in range(250):
        left, right = (
            c.add(low, c.multiply(high - low, Decimal(".382"))),
            c.add(low, c.multiply(high - low, Decimal(".618"))),
        )
        low, high = (low, right) if at(left) < at(right) else (left, high)
    return max(at(low), Decimal(0))


# --- the files


def numbers(values: list[str | int]) -> list[float]:
    """Scores: integers as they are, floats in hexadecimal."""
    return [value if isinstance(value, int) else float.fromhex(value) for value in values]


def check_words(vector: Vector) -> bool:
    words = CIPHERS[vector["cipher"]](bytes.fromhex(vector["key"]))
    found = [words(vector["stream"], vector["first"] + i) for i in range(len(vector["words"]))]
    return found == [int(word, 16) for word in vector["words"]]


def check_keys(vector: Vector) -> bool:
    return seeded_key(vector["seed"], vector["release"]).hex() == vector["key"]


def check_draws(vector: Vector) -> bool:
    words, scale = CIPHERS[vector["cipher"]](bytes.fromhex(vector["key"])), float.fromhex(vector["scale"])
    first, wanted = vector["first"], vector["draws"]
    if vector["law"] == "gaussian":
        return gaussian_draws(words, first // 2208, len(wanted), scale) == wanted
    draw = {"laplace": laplace_draw, "geometric": geometric_draw}[vector["law"]]
    return [draw(words, first + i, scale) for i in range(len(wanted))] == wanted


def check_choices(vector: Vector) -> bool:
    words, eta = CIPHERS[vector["cipher"]](bytes.fromhex(vector["key"])), float.fromhex(vector["eta"])
    scores, wanted = numbers(vector["scores"]), vector["chosen"]
    if vector["method"] == "gumbel":
        return first_arrivals(words, scores, eta, len(wanted)) == wanted
    if vector["method"] == "permute-and-flip":
        return [chosen_head(words, scores, eta)] == wanted
    return choice_by_buckets(words, scores, eta, float.fromhex(vector["factor"]), len(wanted)) == wanted


def check_sigmas(vector: Vector) -> bool:
    """A scale by formula is the least float that is not below it; one by a search is at least what must be."""
    given = {k: float.fromhex(v) for k, v in vector.items() if k not in ("kind", "dimension")}
    if vector["kind"] == "laplace":
        return laplace_scale(given["sensitivity"], given["epsilon"]) == given["scale"]
    if vector["kind"] == "zcdp":
        return zcdp_sigma(given["sensitivity"], given["rho"]) == given["sigma"]
    c = Context(prec=100)
    mu = c.divide(Decimal(given["sensitivity"]), Decimal(given["sigma"]))
    short = c.multiply(mu, 1 + Decimal(given["within"]))
    epsilon, delta = Decimal(given["epsilon"]), Decimal(given["delta"])
    return gaussian_delta(mu, epsilon) <= delta < gaussian_delta(short, epsilon)


def check_prices(vector: Vector) -> bool:
    given = {k: float.fromhex(v) for k, v in vector.items() if k != "kind"}
    if vector["kind"] == "rho of epsilon":
        return rho_of_pure(given["epsilon"]) == given["rho"]
    if vector["kind"] == "rho of range":
        return rho_of_range(given["eta"]) == given["rho"]
    found, within = Decimal(given["found"]), 1 + Decimal(given["within"])
    if vector["kind"] == "epsilon of mu":
        short = Context(prec=100).divide(found, within)
        mu, delta = Decimal(given["mu"]), Decimal(given["delta"])
        return gaussian_delta(mu, found) <= delta < gaussian_delta(mu, short)
    least = zcdp_epsilon(given["rho"], given["delta"])
    return least * (1 - Decimal("1e-15")) <= found <= least * within


CHECKS = {
    "keys": check_keys, "words": check_words, "draws": check_draws,
    "choices": check_choices, "sigmas": check_sigmas, "prices": check_prices,
}  # fmt: skip


def check(path: Path) -> list[str]:
    """What is wrong with a file; prints how many vectors it has."""
    content = json.loads(path.read_text(encoding="utf-8"))
    vectors = content["vectors"]
    wrong = [f"{path.name}, vector {i}: {v}" for i, v in enumerate(vectors) if not CHECKS[content["of"]](v)]
    print(f"{path.name}: {len(vectors)} vectors, {len(wrong)} wrong")
    return wrong


if __name__ == "__main__":
    failures = [wrong for path in sorted(Path(__file__).parent.glob("*-vectors.json")) for wrong in check(path)]
    print("\n".join(failures))
    sys.exit(bool(failures))
