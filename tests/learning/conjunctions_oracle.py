"""The laws of the methods of `learn_conjunction`, by going through all records, databases and transcripts."""

from __future__ import annotations

import itertools
import math

import numpy as np

from fastdp.learning.conjunction_parameters import ConjunctionProblem
from fastdp.learning.conjunctions_peel import PeelParameters
from fastdp.learning.privacy_parameters import PrivacyParameters
from fastdp.privacy import PureDP
from fastdp.randomness.charged_keys import ChargedKeys

PRIVATE = ("peel", "greedy", "counts", "exhaustive")
RELATIONS = ("replace-one", "add-remove")
SLACK = 1e-11  # of probabilities: products of at most 10 quotients of sums of exponentials, each right to 10^-13


def silent(*now):
    pass


def problem(n, d, k, epsilon=1.0, delta=0.0, beta=0.05, neighbors="replace-one"):
    return ConjunctionProblem(n, d, k, PrivacyParameters(epsilon, delta, beta, neighbors))


def keys_of(rng):
    """Keys that nobody is charged for."""
    return ChargedKeys("test", PureDP(1.0), {}, None, rng)


def sample(n, d, seed=0):
    return np.random.default_rng(seed).random((n, d)) < 0.5


def holds(literals, X):
    """Literals as the result has them: (column, value)."""
    out = np.ones(len(X), bool)
    for column, value in literals:
        out &= np.asarray(X)[:, column] == value
    return out


def as_numbers(literals):
    return sorted(2 * column + (not value) for column, value in literals)


# --- all records of d bits with labels, all databases of few of them, and their neighbours


def people(d):
    return [*itertools.product(itertools.product((0, 1), repeat=d), (False, True))]


def neighbourhood(d, n, neighbors):
    """Databases as sorted tuples of records, and all ordered pairs of numbers of neighbours."""
    who = people(d)
    sizes = [n] if neighbors == "replace-one" else range(n + 1)
    databases = [rows for size in sizes for rows in itertools.combinations_with_replacement(who, size)]
    at = {rows: i for i, rows in enumerate(databases)}
    pairs = set()
    for size in [n - 1] if neighbors == "replace-one" else range(n):
        for rest in itertools.combinations_with_replacement(who, size):
            near = [at[tuple(sorted((*rest, one)))] for one in who]
            if neighbors == "replace-one":
                pairs |= {(i, j) for i in near for j in near if i != j}
            else:
                pairs |= {pair for i in near for pair in ((i, at[rest]), (at[rest], i))}
    return databases, sorted(pairs)


def falsifies(bits, literal):
    return bits[literal // 2] == literal % 2


class Counts:
    """N_l, P_l and the number of negatives, for every database and every set of literals drawn before."""

    def __init__(self, databases, d):
        self.d, self.negatives, self.N, self.P = d, {}, {}, {}
        literals = range(2 * d)
        for drawn in itertools.chain.from_iterable(itertools.combinations(literals, r) for r in range(2 * d + 1)):
            left = [
                [(bits, label) for bits, label in rows if not any(falsifies(bits, m) for m in drawn)]
                for rows in databases
            ]

            def of(value, left=left):
                return np.array([
                    [sum(falsifies(bits, m) for bits, label in rows if label == value) for m in literals]
                    for rows in left
                ]).reshape(-1, 2 * d)  # fmt: skip

            key = frozenset(drawn)
            self.negatives[key] = np.array([sum(not label for _, label in rows) for rows in left])
            self.N[key], self.P[key] = of(False), of(True)


def peel_scores(counts, drawn, threshold, dummy):
    scores = np.minimum(counts.N[drawn] - threshold, -counts.P[drawn])
    return np.column_stack((scores, np.full(len(scores), -dummy)))


def scores_by_those_left(counts, drawn, k, dummy):
    """The mutant: greedy's score beside peel's dummy."""
    scores = np.minimum(counts.N[drawn] - counts.negatives[drawn][:, None] / k, -counts.P[drawn])
    return np.column_stack((scores, np.full(len(scores), -dummy)))


def greedy_scores(counts, drawn, k):
    negatives = counts.negatives[drawn][:, None]
    return np.column_stack((np.minimum(k * counts.N[drawn] - negatives, -k * counts.P[drawn]), -negatives))


def softmax(scores, eta):
    weights = np.exp(eta * (scores - scores.max(axis=1, keepdims=True)))
    return weights / weights.sum(axis=1, keepdims=True)


def play(start, databases, chances, follow):
    """The law of the transcripts, [transcript, database], and the literals that each of them draws."""
    leaves, drawn_at, open_ = [], [], [(start, frozenset(), np.ones(databases))]
    seen = {}
    while open_:
        state, drawn, mass = open_.pop()
        if state is None:
            leaves.append(mass)
            drawn_at.append(tuple(sorted(drawn)))
            continue
        if (state, drawn) not in seen:
            seen[state, drawn] = chances(state, drawn)
        for c, chance in enumerate(seen[state, drawn].T):
            literal, after = follow(state, c)
            open_.append((after, drawn | {c} if literal else drawn, mass * chance))
    return np.array(leaves), drawn_at


def peel_law(counts, databases, plan):
    """Of the algorithm as conjunctions.md, theorem 6, has it."""

    def at(phase, rounds):
        """The state where so many rounds of a phase are over."""
        if phase < len(plan.phases) and rounds == plan.phases[phase][1]:
            phase, rounds = phase + 1, 0
        return (phase, rounds) if phase < len(plan.phases) else None

    def chances(state, drawn):
        return softmax(peel_scores(counts, drawn, plan.phases[state[0]][0], plan.dummy), plan.eta)

    def follow(state, c):
        if c == 2 * counts.d:
            return False, at(state[0] + 1, 0)
        return True, at(state[0], state[1] + 1)

    return play(at(0, 0), databases, chances, follow)


def greedy_law(counts, databases, k, rounds, eta):
    """Of theorem 5's; eta is that of scores times k."""

    def follow(done, c):
        return c < 2 * counts.d, done + 1 if done + 1 < rounds else None

    return play(0, databases, lambda done, drawn: softmax(greedy_scores(counts, drawn, k), eta), follow)


def excess(law, pairs, epsilon):
    """The least delta of all pairs at epsilon."""
    return max(float(np.maximum(0, law[:, i] - math.exp(epsilon) * law[:, j]).sum()) for i, j in pairs)


def loss(law, pairs):
    """The least epsilon of all pairs at delta = 0."""
    logs = np.log(law)
    return max(float((logs[:, i] - logs[:, j]).max()) for i, j in pairs)


def own_plan(phases, dummy, eta):
    return PeelParameters(phases, dummy, eta, "own", PureDP(1.0), 0.0)


def all_conjunctions(d, k):
    """As lists of (column, value), in no order in particular."""
    found = []
    for pattern in itertools.product((None, False, True), repeat=d):
        literals = [(c, value) for c, value in enumerate(pattern) if value is not None]
        if len(literals) <= k:
            found.append(literals)
    return [*found, [(0, True), (0, False)]] if k >= 2 else found


def errors_of(literals, rows):
    return sum(all(bits[c] == value for c, value in literals) != label for bits, label in rows)


def exhaustive_law(databases, d, k, eta):
    scores = np.array([[-errors_of(c, rows) for c in all_conjunctions(d, k)] for rows in databases])
    return softmax(scores, eta).T


def range_of(law, pairs):
    """The largest bounded range of a pair."""
    logs = np.log(law)
    return max(float(np.ptp(logs[:, i] - logs[:, j])) for i, j in pairs)


def counts_law(counts, cdf, threshold):
    """Of which literals stay: [set, database]."""
    start = frozenset()
    low, high = cdf((threshold - counts.P[start]).ravel())
    assert (high - low).max() < 1e-12
    kept = ((low + high) / 2).reshape(counts.P[start].shape)
    sets = itertools.product((False, True), repeat=2 * counts.d)
    return np.array([np.where(np.array(stay), kept, 1 - kept).prod(axis=1) for stay in sets])
