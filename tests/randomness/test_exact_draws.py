"""The definition of the draws (fastdp/randomness/exact_draws.py) against the oracles of tests/oracles, which share no
code with it."""

from fractions import Fraction
from itertools import chain, count, repeat

import numpy as np
import pytest

from fastdp.randomness import exact_draws as exact
from fastdp.randomness.exact_draws import Geometric, Uniform, exp_bounds, gaussian_proposal, largest
from tests import oracles

SCALES = [2.0**-20, 0.1, 1.0, 3.3, 2.0**15, 2.0**15 + 1, 2.0**31, 2.0**31 + 1, 2.0**40]
SIGMAS = [2.0**-9, 0.05, 0.3, 0.5, 1.0, 1.3, 4.0, 100.0, 2.0**20, 2.0**40]


def words_of(seed: int) -> "exact.Words":
    """64-bit words that depend on (stream, index) only."""
    return lambda stream, index: int(np.random.default_rng((seed, stream, index)).integers(0, 2**64, dtype=np.uint64))


def bits_from(words: "exact.Words", streams, index):
    """The bits of word `index` of these streams, most significant first."""
    for stream in streams:
        word = words(stream, index)
        yield from (word >> (63 - j) & 1 for j in range(64))


def first_bits(words: "exact.Words", index: int, scale: float) -> tuple[int, int, int]:
    """(prefix of U, its length, sign) of a draw, read off noise.md, "Bits"."""
    half = words(0, index // 2) >> 32 * (index % 2) & 0xFFFFFFFF
    prefix, sign = half >> 1, half & 1
    if scale <= 2**15:
        return prefix, 31, sign
    if scale <= 2**31:
        return prefix << 16 | words(1, index // 4) >> 16 * (index % 4) & 0xFFFF, 47, sign
    return prefix << 32 | words(1, index // 2) >> 32 * (index % 2) & 0xFFFFFFFF, 63, sign


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("two_sided", [True, False])
def test_geometric_draws_are_those_of_the_oracle(scale, two_sided):
    words = words_of(1)
    oracle = oracles.exact_draws.laplace_from_uniform if two_sided else oracles.exact_draws.geometric_from_uniform
    for index in range(25):
        prefix, bits, sign = first_bits(words, index, scale)
        rest = bits_from(words, count(3, 2), index)
        magnitude, _ = oracles.exact_draws.resolve(lambda n, b: oracle(n, b, Fraction(scale)), rest, prefix, bits)
        expected = -magnitude if two_sided and sign else magnitude
        assert exact.geometric_draw(words, index, scale, two_sided=two_sided) == expected


@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_blocks_are_those_of_the_oracle(sigma):
    words, law = words_of(2), gaussian_proposal(sigma)
    t, a, s = law.t, law.a, Fraction(sigma)
    expected, index = [], 3 << 20
    while len(expected) < 12:
        prefix, bits, sign = first_bits(words, index, sigma)
        coin = words(2, index // 4) >> 16 * (index % 4) & 0xFFFF
        m, _ = oracles.exact_draws.resolve(
            lambda n, b: oracles.exact_draws.gaussian_magnitude_from_uniform(n, b, s, t, a),
            bits_from(words, count(3, 2), index),
            prefix,
            bits,
        )
        kept, _ = oracles.exact_draws.resolve(
            lambda n, b, m=m: oracles.exact_draws.gaussian_accepts(n, b, m, s, t, a),
            bits_from(words, count(4, 2), index),
            coin,
            16,
        )
        if kept:
            expected.append(-m if sign else m)
        index += 1
    assert exact.gaussian_block(words, 3, 12, sigma) == expected


@pytest.mark.parametrize("sigma", [2.0**-6, 0.2, 0.5, 1.0, 1.3, 4.0, 11.0])
def test_accepted_proposals_have_the_gaussian_law(sigma):
    """Proposal times acceptance is proportional to exp(-m^2 / (2 sigma^2)), half of it at 0 (lemma 4, theorem 2)."""
    law = gaussian_proposal(sigma)
    n = int(6 * sigma) + 3
    found = oracles.exact_draws.gaussian_proposal_law(Fraction(sigma), law.t, law.a, n)
    accepted = 2 * found[0][0]
    for m, (low, high) in enumerate(found):
        weight_low, weight_high = oracles.numbers.exp_interval(-(Fraction(m) ** 2) / (2 * Fraction(sigma) ** 2), 90)
        half = Fraction(1, 2) if m == 0 else 1
        tiny = Fraction(1, 2**60) * accepted
        assert low - tiny <= accepted * weight_high * half
        assert high + tiny >= accepted * weight_low * half


def test_proposals_are_accepted_as_often_as_noise_md_says():
    for sigma in (0.3, 1.0, 1.42, 1.5, 2.0, 2.2, 2.9, 3.0, 4.0, 8.0, 1000.0):
        law = gaussian_proposal(sigma)
        q = float(np.exp(-1 / float(law.t)))
        g = float(np.exp(float(law.sigma**2 / (2 * law.t**2) - law.a / law.t)))
        mass = law.a - 0.5 + g / -np.expm1(-1 / float(law.t))
        half = sum(np.exp(-(np.arange(-9 * int(sigma) - 9, 9 * int(sigma) + 10) ** 2) / (2 * sigma**2))) / 2
        assert 0.85 < half / mass < (0.95 if sigma >= 1 else 1), (sigma, q)


@pytest.mark.parametrize("x", [0, -Fraction(1, 10**9), -Fraction(1, 3), -1, -Fraction(200, 7), -(2**39), -(10**30)])
@pytest.mark.parametrize("bits", [64, 128, 500])
def test_exp_bounds_hold_and_are_close(x, bits):
    low, high = exp_bounds(Fraction(x), bits)
    assert 0 <= low <= high <= low + 4
    if -x < 10**6:
        true_low, true_high = oracles.numbers.exp_interval(Fraction(x), bits + 30)
        assert low <= true_high * 2**bits
        assert high >= true_low * 2**bits


def test_a_draw_is_settled_whatever_its_first_bits_are():
    """U next to 0, next to 1 and next to a threshold: more bits are taken until the answer is certain."""
    law = Geometric(Fraction(1), two_sided=False)
    zeros = Uniform(0, 63, chain([0, 0, 1 << 60], repeat(0)))
    assert largest(law, zeros) == int((63 + 64 + 64 + 4) * np.log(2))
    assert largest(law, Uniform(2**63 - 1, 63, chain([2**64 - 1] * 4, repeat(0)))) == 0
    threshold = int(Fraction(*oracles.numbers.exp_interval(Fraction(-7), 200)[:1]) * 2**127)
    below = Uniform(threshold >> 64, 63, chain([threshold & (2**64 - 1)], repeat(0)))
    assert largest(law, below) == 7
    above = Uniform((threshold + 1) >> 64, 63, chain([(threshold + 1) & (2**64 - 1)], repeat(0)))
    assert largest(law, above) == 6


# --- which words are read: the table of noise.md, "Bits", written down a second time


class Script:
    """Words of one's own choice, 0 where nothing was written; it notes which are read."""

    def __init__(self) -> None:
        self.words: dict[tuple[int, int], int] = {}
        self.read: set[tuple[int, int]] = set()

    def __call__(self, stream: int, index: int) -> int:
        self.read.add((stream, index))
        return self.words.get((stream, index), 0)

    def write(self, stream: int, index: int, value: int, width: int = 64) -> None:
        """Word `index` of a stream that is read in words of `width` bits, low bits first."""
        at = stream, index * width // 64
        self.words[at] = self.words.get(at, 0) | value << index * width % 64

    def write_uniform(self, index: int, scale: float, prefix: int, sign: int) -> None:
        """The first bits of U of a draw, and its sign."""
        extra = 0 if scale <= 2**15 else 16 if scale <= 2**31 else 32
        self.write(0, index, (prefix >> extra) << 1 | sign, 32)
        if extra:
            self.write(1, index, prefix & (1 << extra) - 1, extra)


def digits(threshold: oracles.numbers.Interval, *widths: int) -> list[int]:
    """The binary digits of a number in (0, 1) in groups of these widths."""
    total, (low, high) = sum(widths), threshold
    number = int(low * 2**total)
    assert number == int(high * 2**total)
    found = []
    for width in widths:
        total -= width
        found.append(number >> total & (1 << width) - 1)
    return found


ONES = 2**64 - 1


def nearby(digits: list[int], below: bool) -> list[tuple[int, int]]:
    """The next two words of numbers just below, or above, the threshold whose digits go on like this: one number parts
    from it in the first of the words, the other in the second."""
    first, second = digits
    assert 0 < first < ONES
    assert 0 < second < ONES
    return [(first - 1, ONES), (first, second - 1)] if below else [(first + 1, 0), (first, second + 1)]


@pytest.mark.parametrize("scale", [3.3, 2.0**20, 2.0**33])
@pytest.mark.parametrize("index", [0, 5, 7 << 10 | 3])
@pytest.mark.parametrize("below", [True, False])
def test_bits_of_u_beyond_the_prefix_come_from_streams_3_and_5(scale, index, below):
    """U agrees with a threshold in all its first bits: the words that follow decide."""
    bits = 31 if scale <= 2**15 else 47 if scale <= 2**31 else 63
    m = int(scale) + 2
    low, high = oracles.noise.laplace_tail(m, Fraction(scale), 400)  # of one side
    prefix, *rest = digits((2 * low, 2 * high), bits, 64, 64)
    for word, after in nearby(rest, below):
        script = Script()
        script.write_uniform(index, scale, prefix, 1)
        script.write(3, index, word)
        script.write(5, index, after)
        for wrong in (4, 6):  # what must not be read says the opposite
            script.write(wrong, index, ONES if below else 0)
        assert exact.geometric_draw(script, index, scale, two_sided=True) == (-m if below else 1 - m)
        assert all(at == index and stream % 2 for stream, at in script.read if stream > 1)


@pytest.mark.parametrize("sigma", [4.0, 2.0**20, 2.0**33])
@pytest.mark.parametrize("below", [True, False])
def test_bits_of_the_coin_beyond_its_16_come_from_streams_4_and_6(sigma, below):
    """V agrees with its bound in all 16 bits: the words that follow say whether the proposal is kept."""
    law = gaussian_proposal(sigma)
    bits = 31 if sigma <= 2**15 else 47 if sigma <= 2**31 else 63
    index = 3 << 20
    for m in (law.a // 2 + 1, law.a + int(2 * law.t)):
        above, beyond = (oracles.exact_draws.gaussian_proposal_tail(k, sigma, law.t, law.a)[0] for k in (m, m + 1))
        prefix = int((above + beyond) / 2 * 2**bits)  # proposes m, and U needs no bit more
        coin, *rest = digits(oracles.exact_draws.gaussian_acceptance(m, sigma, law.t, law.a, 400), 16, 64, 64)
        for word, after in nearby(rest, below):
            script = Script()
            script.write_uniform(index, sigma, prefix, 0)
            script.write_uniform(index + 1, sigma, prefix, 1)  # the next proposal: -m, and its coin, 0, keeps it
            script.write(2, index, coin, 16)
            script.write(4, index, word)
            script.write(6, index, after)
            for wrong in (3, 5):
                script.write(wrong, index, ONES if below else 0)
            assert exact.gaussian_block(script, 3, 1, sigma) == [m if below else -m]


@pytest.mark.parametrize("sigma", [4.0, 2.0**20, 2.0**33])
@pytest.mark.parametrize("below", [True, False])
def test_bits_of_u_of_a_proposal_come_from_streams_3_and_5(sigma, below):
    law = gaussian_proposal(sigma)
    bits = 31 if sigma <= 2**15 else 47 if sigma <= 2**31 else 63
    index = 3 << 20
    for m in (law.a // 2 + 1, law.a + int(2 * law.t)):
        prefix, *rest = digits(oracles.exact_draws.gaussian_proposal_tail(m, sigma, law.t, law.a, 400), bits, 64, 64)
        for word, after in nearby(rest, below):
            script = Script()
            script.write_uniform(index, sigma, prefix, 1)
            script.write(3, index, word)
            script.write(5, index, after)
            script.write(4, index, ONES if below else 0)
            script.write(6, index, ONES if below else 0)
            # the coin is 0 in its 16 bits: it keeps the proposal, whose probability is far above 2^-16
            assert exact.gaussian_block(script, 3, 1, sigma) == [-m if below else 1 - m]


# --- choices


def prefixes(words: "exact.Words", index: int) -> oracles.words.Prefixes:
    return oracles.words.candidate_prefixes(words, index)


def test_numbers_of_candidates_heads_and_coins_have_the_words_of_selection_md():
    words = words_of(5)
    for index in (0, 1, 6, 2**40 + 1):
        half = words(0, index // 2) >> 32 * (index % 2) & 0xFFFFFFFF
        expected = (half << 128 | words(1, index) << 64 | words(3, index), 160)
        assert exact.candidate_uniform(words, index).to(97) == expected
        assert exact.proposal_coin(words, index).to(65) == (words(1, index) << 64 | words(3, index), 128)
    assert exact.choice_uniform(words).to(65) == (words(2, 0) << 64 | words(4, 0), 128)


def test_only_the_words_that_a_decision_takes_are_read():
    script = Script()
    exact.candidate_uniform(script, 7).to(32)
    assert script.read == {(0, 3)}
    exact.candidate_uniform(script, 7).to(96)
    assert script.read == {(0, 3), (1, 7)}


@pytest.mark.parametrize("count_", [1, 2, 3, 5, 1000, 2**62 - 1, 2**62])
def test_whole_numbers_below_a_count(count_):
    for seed in range(40):
        words = words_of(seed)
        heads = range(count_)
        assert exact.uniform_below(count_, exact.choice_uniform(words)) == oracles.selection.chosen_head(words, heads)
    assert exact.uniform_below(count_, Uniform(0, 0, chain([0, 0], repeat(1)))) == 0
    assert exact.uniform_below(count_, Uniform(0, 0, repeat(ONES))) == count_ - 1


@pytest.mark.parametrize("count_", [3, 5, 1000, 2**62 - 1])
def test_a_number_next_to_a_border_takes_more_words(count_):
    """U agrees with j / count in its first 128 bits: the next word says on which side it is."""
    for j in {1, 2, count_ // 2 + 1, count_ - 1}:
        digits = [Fraction(j, count_) * 2 ** (64 * n) // 1 % 2**64 for n in (1, 2, 3)]
        for last, expected in ((digits[2] - 1, j - 1), (digits[2] + 1, j)):
            uniform = Uniform(0, 0, chain([*digits[:2], last], repeat(2**63)))
            assert exact.uniform_below(count_, uniform) == expected


def candidate(score, *words, half=12345):
    """A candidate of this score whose number has these bits, and then half of all."""
    return exact.Candidate(Fraction(score), Uniform(half, 32, chain(words, repeat(2**63))))


def test_arrivals_are_compared_as_the_oracle_does():
    words = words_of(8)
    for eta in (1.0, 0.3, 2.0**-899, 2.0**899):
        scores = np.random.default_rng(9).normal(size=12) / eta
        numbers = range(12)
        expected = oracles.selection.gumbel_max(words, scores.tolist(), eta, 12)
        places = {i: place for place, i in enumerate(expected)}
        candidates = [exact.Candidate(Fraction(scores[i].item()), exact.candidate_uniform(words, i)) for i in numbers]
        for i in numbers:
            for j in numbers:
                if i != j:
                    found = exact.compare_arrivals(candidates[i], candidates[j], Fraction(eta))
                    assert found == (-1 if places[i] < places[j] else 1)


@pytest.mark.parametrize("agree", [0, 1, 3, 12])
def test_equal_scores_are_told_apart_by_whichever_word_differs(agree):
    same = [77 + n for n in range(agree)]
    for first, second in ((5, 6), (0, 1), (2**63, 2**63 + 1), (ONES - 1, ONES)):
        a, b = candidate(3, *same, first), candidate(3, *same, second)
        assert exact.compare_arrivals(a, b, Fraction(1)) == -1
        assert exact.compare_arrivals(b, a, Fraction(1)) == 1


def test_scores_that_make_up_for_the_numbers_to_forty_digits():
    """The exact tie is between two fractions 10^-40 apart."""
    a_bits, b_bits = (12345 << 128 | 7 << 64 | 9), (12345678 << 128 | 7 << 64 | 9)
    logs = [oracles.selection.log_exponential(n << 512 | 1 << 511, 160 + 512, 400) for n in (a_bits, b_bits)]
    tie = logs[1][0] - logs[0][0]  # b arrives so much later
    for sign in (1, -1):
        score = tie + sign * Fraction(1, 10**40)
        a, b = candidate(0, 7, 9), candidate(score, 7, 9, half=12345678)
        assert exact.compare_arrivals(a, b, Fraction(1)) == sign
        assert exact.compare_arrivals(b, a, Fraction(1)) == -sign


def test_a_candidate_720_behind_can_win():
    """Where a float softmax says e^-720, and one 1,500 behind, where it says 0: the number must be small enough."""
    for behind, zeros in ((720, 17), (1500, 34)):
        late, early = [0] * zeros, [0] * (zeros - 2)
        top = candidate(0)
        assert exact.compare_arrivals(candidate(-behind, *late, 1, half=0), top, Fraction(1)) == -1
        assert exact.compare_arrivals(candidate(-behind, *early, ONES, half=0), top, Fraction(1)) == 1


@pytest.mark.parametrize("bits", [100, 200, 700])
def test_bounds_of_the_logarithm_of_an_exponential(bits):
    rng = np.random.default_rng(10)
    specials = [0, 2**32 - 1, 2714937127, 2714937128, 2**30, 1]  # 1 - 1/e is between the third and the fourth
    for half in specials + rng.integers(0, 2**32, 20).tolist():
        words = [int(w) for w in rng.integers(0, 2**64, 12, np.uint64)]
        low, high = exact.log_exponential_bounds(Uniform(half, 32, iter(words)), bits)
        assert low < high < low + Fraction(1, 2 ** (bits - 70))
        n = half
        for word in words:
            n = n << 64 | word
        true_low, true_high = oracles.selection.log_exponential(n, 32 + 64 * 12, bits + 128)
        assert low <= true_low
        assert true_high <= high


def test_the_logarithm_of_an_exponential_is_the_nearest_float():
    words = words_of(11)
    for index in range(60):
        found = exact.log_exponential(exact.candidate_uniform(words, index))
        for n, b in prefixes(words, index):
            if b > 200:
                low, high = oracles.selection.log_exponential(n, b, 150)
                break
        assert float(low) == float(high) == found
    zeros = Uniform(0, 32, chain([0, 0, 1], repeat(0)))
    assert exact.log_exponential(zeros) == pytest.approx(-(32 + 192) * np.log(2))
    ones = Uniform(2**32 - 1, 32, chain([ONES, ONES], repeat(0)))
    assert exact.log_exponential(ones) == pytest.approx(np.log((32 + 128) * np.log(2)))


@pytest.mark.parametrize("doublings", [0, 1, 50, 126])
def test_coins_beside_a_doubled_exponential(doublings):
    """Next to 2^l e^x, where the words that follow decide; at x = 0 every coin is below."""
    for extra in (Fraction(1, 10**9), Fraction(1, 3), Fraction(5), Fraction(300)):
        exponent = -(doublings * oracles.numbers.ln_interval(2, 100)[1]) - extra
        low = oracles.numbers.exp_interval(exponent, 400)[0] * 2**doublings
        digits = [int(low * 2 ** (64 * n)) % 2**64 for n in (1, 2, 3)]
        skip = sum(digit == 0 for digit in digits)
        if 0 < digits[2] < ONES and skip < 3:
            for last, expected in ((digits[2] - 1, True), (digits[2] + 1, False)):
                coin = Uniform(0, 0, chain([*digits[:2], last], repeat(2**63)))
                assert exact.is_below_exp(coin, exponent, doublings) == expected
    assert exact.is_below_exp(Uniform(0, 0, repeat(ONES)), Fraction(0))
    assert not exact.is_below_exp(Uniform(0, 0, chain([0] * 15, [ONES], repeat(0))), Fraction(-(2**70)), doublings)


@pytest.mark.parametrize(("following", "below"), [(0, True), (2**64 - 1, False)])
def test_a_coin_next_to_a_product_takes_more_words(following, below):
    """1/3 begins with the coin's 64 bits, so the next word decides."""
    coin = Uniform(2**64 // 3, 64, iter([following] * 4))
    assert exact.is_below_product(coin, Fraction(1, 3), 0, Fraction(0)) is below


def test_bits_that_never_decide_come_to_an_end():
    zeros = Uniform(0, 0, iter(int, 1))  # 0 for ever
    with pytest.raises(RuntimeError, match=r"must be decided by 2,097,152 random bits.*its key is not random"):
        zeros.to(exact.MOST_RANDOM_BITS + 1)
