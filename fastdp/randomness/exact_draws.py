"""What every draw is, decided in integers.

A draw of noise is a function of its random bits: the largest k with U <= threshold(k). So is a choice: which of two
candidates arrives first, whether a coin is below e^x. Here that is evaluated with interval arithmetic and as many bits
as the decision takes, so it is always right and never fast. It is the definition that the compiled kernels must meet
bit for bit, and the last resort for what they report as undecided. Nothing here knows about arrays, and no float here
decides anything (`log_exponential` rounds, for those who know its error).

Which bits are U: the word streams of a release, as stated in noise.md and selection.md, "Bits".
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, log, sqrt

from ..kernels import layout
from ..support.rounding import context_of

Words = Callable[[int, int], int]  # (stream, index) -> 64-bit word


MOST_RANDOM_BITS = 2**21  # of one draw, twice what the widest domain takes: every loop here that asks for more ends


class Uniform:
    """A number in (0, 1) of which more bits can always be had."""

    def __init__(self, prefix: int, bits: int, more: Iterator[int]) -> None:
        self._prefix, self._bits, self._more = prefix, bits, more

    def to(self, bits: int) -> tuple[int, int]:
        """(N, b) with the number in [N, N + 1] / 2^b and b >= bits."""
        if bits > MOST_RANDOM_BITS:
            raise RuntimeError(
                f"a draw: must be decided by {MOST_RANDOM_BITS:,} random bits, as all but one in 2^1,000,000 are: its "
                "key is not random, or values were changed during the call"
            )
        while self._bits < bits:
            self._prefix = self._prefix << 64 | next(self._more)
            self._bits += 64
        return self._prefix, self._bits

    def guess(self) -> float:
        """ln of the number, roughly, from bits enough that they are not all zero."""
        prefix, bits = self.to(1)
        while prefix == 0:
            prefix, bits = self.to(bits + 1)
        return log(prefix + 0.5) - bits * log(2) if bits < 900 else log(prefix) - bits * log(2)


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers with low <= e^x 2^bits <= high, for x <= 0; close together when `bits` is large enough."""
    top, bottom = -x.numerator, x.denominator  # as integers: comparisons of fractions take a microsecond each
    if top == 0:
        return 1 << bits, 1 << bits
    if top > bits * bottom:  # e^x < 2^x <= 2^-bits
        return 0, 1
    halvings = (top // bottom + 1).bit_length() + 8
    work = bits + halvings + 16
    one = 1 << work
    y_low = (top << work) // (bottom << halvings)  # y = -x / 2^halvings <= 2^-8, rounded both ways
    y_high = y_low + 1
    low = term_low = high = term_high = one
    k = 0
    while term_high > 0:
        k += 1
        term_low = (term_low * y_low >> work) // k
        term_high = -((-term_high * y_high >> work) // k)
        low, high = low + term_low, high + term_high
        if term_high <= 1:  # what is left is below a geometric series of ratio 2^-8
            high += 1
            break
    low, high = one * one // high, one * one // low + 1  # e^-y
    for _ in range(halvings):
        low, high = low * low >> work, (high * high >> work) + 1
    return low >> (work - bits), (high >> (work - bits)) + 1


@dataclass(frozen=True)
class Geometric:
    """Pr[X >= k] = q^k, or, if `two_sided`, Pr[|X| >= k] = 2 q^k / (1 + q) for k >= 1, with q = e^(-1 / scale)."""

    scale: Fraction
    two_sided: bool

    def start(self, uniform: Uniform) -> int:
        return int(-float(self.scale) * uniform.guess())

    def at_least(self, k: int, uniform: Uniform, bits: int) -> bool | None:
        n, b = uniform.to(bits)
        low, high = exp_bounds(-k / self.scale, bits)
        if not self.two_sided:
            return decide(n << bits, (n + 1) << bits, low << b, high << b)
        q_low, q_high = exp_bounds(-1 / self.scale, bits)
        one = 1 << bits
        return decide(n * (one + q_low), (n + 1) * (one + q_high), low << b + 1, high << b + 1)


@dataclass(frozen=True)
class GaussianProposal:
    """The magnitudes of noise.md, lemma 4: 0 with weight 1/2, 1 .. a - 1 with weight 1, then a tail of g q^k."""

    sigma: Fraction
    t: Fraction
    a: int

    def start(self, uniform: Uniform) -> int:
        return self.a

    def at_least(self, m: int, uniform: Uniform, bits: int) -> bool | None:
        n, b = uniform.to(bits)
        # U <= W(m) / M, both times 1 - q: M = (a - 1/2)(1 - q) + g, and
        # W = g q^(m - a) in the tail, g + (a - m)(1 - q) below it
        g = self.sigma**2 / (2 * self.t**2) - self.a / self.t
        rise = max(g, Fraction(0))  # 0 for the t and a below, whose g is negative; in general, divide by e^rise
        q_low, q_high = exp_bounds(-1 / self.t, bits)
        g_low, g_high = exp_bounds(g - rise, bits)
        r_low, r_high = exp_bounds(-rise, bits)
        one = 1 << bits
        p_low, p_high = (one - q_high) * r_low >> bits, ((one - q_low) * r_high >> bits) + 1
        m_low, m_high = (2 * self.a - 1) * p_low + 2 * g_low, (2 * self.a - 1) * p_high + 2 * g_high
        if m >= self.a:
            w_low, w_high = exp_bounds(g - rise - (m - self.a) / self.t, bits)
        else:
            w_low, w_high = g_low + (self.a - m) * p_low, g_high + (self.a - m) * p_high
        return decide(n * m_low, (n + 1) * m_high, w_low << b + 1, w_high << b + 1)

    def accepts(self, m: int, coin: Uniform) -> bool:
        """Whether coin <= exp(-(m - mu)^2 / (2 sigma^2)), mu = 0 for m < a and sigma^2 / t from there on."""
        offset = m - (self.sigma**2 / self.t if m >= self.a else 0)
        return is_below_exp(coin, -(offset**2) / (2 * self.sigma**2))


def decide(left_low: int, left_high: int, right_low: int, right_high: int) -> bool | None:
    """left <= right, where the intervals decide."""
    if left_high <= right_low:
        return True
    return False if left_low >= right_high else None


def is_below_exp(coin: Uniform, exponent: Fraction, doublings: int = 0) -> bool:
    """Whether coin <= 2^doublings e^exponent, for exponent <= 0."""
    bits = 32  # half the work of 64, and not enough once in 2^30
    while True:
        n, b = coin.to(bits)
        low, high = exp_bounds(exponent, bits + doublings)
        answer = decide(n << bits, (n + 1) << bits, low << b, high << b)
        if answer is not None:
            return answer
        bits += 64


def is_below_product(coin: Uniform, factor: Fraction, doublings: int, exponent: Fraction) -> bool:
    """Whether coin <= factor 2^doublings e^exponent, for factor > 0 and a product that is at most 1, of any parts."""
    shift = factor.numerator.bit_length() - factor.denominator.bit_length() - 1
    factor = factor / (1 << shift) if shift > 0 else factor * (1 << -shift)  # in (1, 4): the rest is below 1
    doublings += shift
    bits = 64
    while True:
        n, b = coin.to(bits)
        ends = sorted(exponent + doublings * ln2 for ln2 in ln2_bounds(bits + doublings.bit_length()))
        low, high = exp_bounds(min(ends[0], Fraction(0)), bits)[0], exp_bounds(min(ends[1], Fraction(0)), bits)[1]
        left, right = factor.denominator << bits, factor.numerator << b
        answer = decide(n * left, (n + 1) * left, low * right, high * right)
        if answer is not None:
            return answer
        bits += 64


@lru_cache(64)
def ln2_bounds(bits: int) -> tuple[Fraction, Fraction]:
    """Fractions on either side of ln 2, less than 2^-bits apart."""
    floor_, ceiling = (context_of(bits // 3 + 3, rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING))
    two = Decimal(2)  # decimal's ln is rounded correctly: one step outward bounds it
    return Fraction(floor_.next_minus(floor_.ln(two))), Fraction(ceiling.next_plus(ceiling.ln(two)))


def largest(law: Geometric | GaussianProposal, uniform: Uniform) -> int:
    """The largest k >= 0 with U <= threshold(k)."""

    def at_least(k: int) -> bool:
        bits = 64
        while (answer := law.at_least(k, uniform, bits)) is None:
            bits += 64
        return answer

    # gallop from the guess, then bisect; by hand, as each question decides a draw and the guess is mostly the answer
    low = max(0, law.start(uniform))
    step = 1
    while low > 0 and not at_least(low):
        low, step = max(0, low - step), 2 * step
    high, step = low + 1, 1
    while at_least(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if at_least(middle) else (low, middle)
    return low


def extra_bits(scale: float) -> int:
    """How many bits of U stand in stream 1."""
    if scale <= layout.SHORT_UP_TO:
        return 0
    return layout.MEDIUM_EXTRA if scale <= layout.MEDIUM_UP_TO else layout.LONG_EXTRA


def _small_word(words: Words, stream: int, index: int, width: int) -> int:
    """Word `index` of a stream that is read in words of `width` bits."""
    per_word = 64 // width
    return words(stream, index // per_word) >> width * (index % per_word) & (1 << width) - 1


def _uniform(words: Words, index: int, extra: int) -> tuple[Uniform, int]:
    """U of draw `index`, and its sign bit."""
    word = _small_word(words, layout.U_STREAM, index, 32)
    prefix = word >> 1
    if extra:
        prefix = prefix << extra | _small_word(words, layout.U_EXTRA_STREAM, index, extra)
    return Uniform(prefix, layout.SHORT_BITS + extra, _beyond(words, layout.U_MORE_STREAM, index)), word & 1


def _beyond(words: Words, stream: int, index: int) -> Iterator[int]:
    """The bits that follow: word `index` of every second stream."""
    while True:
        yield words(stream, index)
        stream += 2


def geometric_draw(words: Words, index: int, scale: float, *, two_sided: bool) -> int:
    """Draw number `index` of a release: geometric, or discrete Laplace with its sign."""
    uniform, sign = _uniform(words, index, extra_bits(scale))
    magnitude = largest(Geometric(Fraction(scale), two_sided), uniform)
    return -magnitude if two_sided and sign else magnitude


@lru_cache(64)
def gaussian_proposal(sigma: float) -> GaussianProposal:
    """The proposal for sigma: the body reaches half way to the peak of the tail, which makes both about equally likely.

    Any t > 0 and any integer a >= 1 give the exact law; these accept 85 % at sigma = 1.4, 88.6 % at large sigma.
    """
    peak = max(sqrt(2) * sigma, 1.0)
    return GaussianProposal(Fraction(sigma), Fraction(sigma * sigma / peak), ceil(peak / 2))


def gaussian_block(words: Words, block: int, count: int, sigma: float) -> list[int]:
    """The first `count` draws of a block: its accepted proposals, in order."""
    law = gaussian_proposal(sigma)
    draws: list[int] = []
    index = block * layout.PROPOSALS
    while len(draws) < count:
        uniform, sign = _uniform(words, index, extra_bits(sigma))
        coin = Uniform(
            _small_word(words, layout.COIN_STREAM, index, layout.COIN_BITS),
            layout.COIN_BITS,
            _beyond(words, layout.COIN_MORE_STREAM, index),
        )
        magnitude = largest(law, uniform)
        if law.accepts(magnitude, coin):
            draws.append(-magnitude if sign else magnitude)
        index += 1
    return draws


# --- choices


def candidate_uniform(words: Words, index: int) -> Uniform:
    """The number of candidate `index`: 32 bits of stream 0, then 64 of streams 1, 3, 5, ..."""
    first = _small_word(words, layout.CANDIDATE_STREAM, index, 32)
    return Uniform(first, 32, _beyond(words, layout.CANDIDATE_MORE_STREAM, index))


def choice_uniform(words: Words) -> Uniform:
    """The number that draws one of the heads of permute-and-flip: word 0 of streams 2, 4, 6, ..."""
    return Uniform(0, 0, _beyond(words, 2, 0))


def proposal_coin(words: Words, index: int) -> Uniform:
    """The coin of proposal `index`: 64 bits of streams 1, 3, 5, ..."""
    return Uniform(0, 0, _beyond(words, layout.PROPOSAL_COIN_STREAM, index))


def uniform_below(count: int, uniform: Uniform) -> int:
    """floor(count U): every integer below `count` alike."""
    bits = 64 + count.bit_length()
    while True:
        n, b = uniform.to(bits)
        if count * n >> b == (count * (n + 1) - 1) >> b:
            return count * n >> b
        bits += 64


@dataclass(frozen=True)
class Candidate:
    """A candidate of a Gumbel-max choice, by its time of arrival E e^(-eta score), E = -ln(1 - U)."""

    score: Fraction
    uniform: Uniform


def compare_arrivals(a: Candidate, b: Candidate, eta: Fraction) -> int:
    """-1 if a arrives first, 1 if b does."""
    ahead = eta * (a.score - b.score)
    bits = 128
    while True:
        a_low, a_high = log_exponential_bounds(a.uniform, bits)
        b_low, b_high = log_exponential_bounds(b.uniform, bits)
        if a_high - b_low < ahead:
            return -1
        if a_low - b_high > ahead:
            return 1
        bits *= 2


def log_exponential(uniform: Uniform) -> float:
    """ln E, to the nearest float."""
    bits = 128
    while True:
        low, high = map(float, log_exponential_bounds(uniform, bits))
        if low == high:
            return low
        bits *= 2


def log_exponential_bounds(uniform: Uniform, bits: int) -> tuple[Fraction, Fraction]:
    """ln E for E = -ln(1 - U), between two fractions that are close together when there are bits enough."""
    n, b = uniform.to(bits)
    while n == 0 or n + 1 == 1 << b:
        n, b = uniform.to(b + 64)
    # decimal's ln is rounded correctly: one step outward bounds it
    floor_, ceiling = (context_of(b // 3 + 20, rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING))
    rest_high = ceiling.divide(Decimal((1 << b) - n), Decimal(1 << b))
    rest_low = floor_.divide(Decimal((1 << b) - n - 1), Decimal(1 << b))
    low = floor_.next_minus(floor_.ln(floor_.next_minus(floor_.ln(rest_high).copy_negate())))
    high = ceiling.next_plus(ceiling.ln(ceiling.next_plus(ceiling.ln(rest_low).copy_negate())))
    return Fraction(low), Fraction(high)
