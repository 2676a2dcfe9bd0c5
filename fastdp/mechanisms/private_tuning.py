"""The best of several private runs, for the price of two of them: tuning that is paid for.

The number of runs is drawn, and nobody is told. ../privacy/best_of_runs.md proves the price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import inf, isnan
from typing import Any

from ..privacy.accounted import Accounted
from ..privacy.best_of_runs import best_of_runs, epsilon_of_run, parameter_of, rho_of_run
from ..privacy.blocks import outside_of_blocks
from ..privacy.budget import Budget
from ..privacy.guarantees import ZCDP, ApproxDP, Guarantee, Neighbors, PureDP
from ..privacy.origin import with_origin
from ..randomness.charged_keys import ChargedKeys
from ..randomness.exact_draws import Uniform
from ..randomness.keys import Randomness, word_source
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import integer
from ..support.parameters import MOST_STEPS
from ..support.public_paths import public_as
from ..support.results import Displayed, DisplayLines
from ..support.rounding import context_of
from ..support.shown import described, shown

Run = Callable[[Budget], tuple[Any, float]]
_BITS = 128  # that a first look at the draw takes
_FAR = 120  # K above so many m has a probability below e^-100


@public_as("fastdp")
@dataclass(frozen=True, repr=False)
class BestRun(Accounted, Displayed):
    """What `best_of` has chosen: the result and the score of one run. How many there were is not known.

    Parameters
    ----------
    value : Any
        What the run returned.
    score : float
        Its score.
    guarantee : Guarantee
        Of the choice and all its runs together.
    """

    value: Any
    score: float
    guarantee: Guarantee

    def _display(self) -> DisplayLines:
        return [("value", shown(self.value)), ("score", f"{self.score:.6g}"), ("guarantee", str(self.guarantee))]


@boundary
def best_of(
    run: Run,
    k: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> BestRun:
    """Release the best of several private runs: of a random number of them, with mean `k`.

    Parameters
    ----------
    run : callable
        `run(budget)` makes one run and returns (result, score), the higher the better; what it releases in its thread
        is charged to the budget that it is given, the score's release, too. Which candidate it tries it draws by
        itself. A score that is NaN is the worst.
    k : int >= 1
        The mean number of runs. The price does not depend on it without a delta, and hardly with one.
    epsilon : float > 0
        Of all together; without a delta a run has half of it.
    delta : float in [0, 1)
        With a delta, a run has a rho: for runs that use Gaussian noise.
    rng : Randomness, optional
        For tests, of the number of runs; by default every call draws a fresh key from the operating system.
    budget : Budget, optional
        What is charged; by default the budget whose block is open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    BestRun
        `.value` and `.score` of the best run, the first of equals.

    Raises
    ------
    ValueError
        Where epsilon is too small for any rho, or `run` returns something else.

    Notes
    -----
    Guarantee    epsilon-DP, or (epsilon, delta)-DP with a Renyi curve
    Proof        ../privacy/best_of_runs.md, theorems 1 and 2
    Accuracy     a run as good as the best share q of all is among them with probability 1 - ln(g + (1-g) q) / ln g,
                 where (1-g) / (g ln(1/g)) = k; `bounds.best_of`
    Cost         k runs in the mean
    Not covered  how often `run` is called, and the time it takes: who knows that knows more than is paid for. A run
                 that knows of others; a score from records that is not released privately

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> ages, choose = np.array([31, 45, 22, 67, 54] * 200), np.random.default_rng(0)
    >>> def try_a_width(budget):
    ...     width = choose.choice([5, 10, 20])
    ...     counts = np.bincount(ages // width)
    ...     noisy = fastdp.laplace(counts, sensitivity=2, epsilon=budget.epsilon / 2)
    ...     score = fastdp.laplace(int(counts.max()), sensitivity=1, epsilon=budget.left.epsilon)
    ...     return (width, noisy), float(score)
    >>> best = fastdp.best_of(try_a_width, 10, epsilon=1.0)
    >>> print(best.guarantee)
    1-DP, replace-one
    """
    if not callable(run):
        raise ValueError(f"run={shown(run)}: must be a function of a budget that returns (result, score)")
    k = integer("k", k, least=1, most=MOST_STEPS)
    epsilon, delta = parameters.epsilon(epsilon), parameters.delta_or_none(delta)
    neighbors = parameters.neighbors(neighbors)
    guarantee, total = _prices(epsilon, delta, k, neighbors)
    stated = {"k": k, "epsilon": epsilon, **({"delta": delta} if delta else {})}
    with ChargedKeys("best_of", guarantee, stated, budget, rng) as keys:
        runs = number_of_runs(parameter_of(keys.reads(k)), keys.take())
        best: tuple[Any, float] | None = None
        seeded: Guarantee | None = None
        for _ in range(runs):
            own = Budget(neighbors=neighbors, **total)
            made = _result(outside_of_blocks(lambda own=own: _inside(run, own)))  # type: ignore[misc]
            seeded = own.spent if own.spent.seeded else seeded
            best = made if best is None or made[1] > best[1] else best
        assert best is not None
        guarantee = keys.stating(guarantee)
        return BestRun(*best, guarantee if seeded is None else with_origin(guarantee, seeded.origin))


def _prices(epsilon: float, delta: float, k: int, neighbors: Neighbors) -> tuple[Guarantee, dict[str, Any]]:
    """What the choice guarantees, and the total of the budget of one run."""
    if not delta:
        return PureDP(epsilon, neighbors=neighbors), {"epsilon": epsilon_of_run(epsilon)}
    rho = rho_of_run(epsilon, delta, k)
    if not rho:
        raise ValueError(f"epsilon={epsilon!r}: is too small for a choice at delta={delta!r}; take a larger one, or k")
    curve = best_of_runs(ZCDP(rho, neighbors=neighbors), k)
    return ApproxDP(epsilon, delta, neighbors=neighbors) & curve, {"rho": rho}


def _inside(run: Run, own: Budget) -> Any:
    with own:
        return run(own)


def _result(made: Any) -> tuple[Any, float]:
    if not isinstance(made, tuple) or len(made) != 2:
        raise ValueError(f"run: returned {described(made)}: must return a pair (result, score)")
    value, score = made
    try:
        number = float(score)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"run: returned a score of type {type(score).__name__}: must be a number") from None
    return value, -inf if isnan(number) else number


def number_of_runs(m: int, key: Any) -> int:
    """A draw of the logarithmic law with gamma = 1/m: Pr[K = j] = (1 - 1/m)^j / (j ln m), exactly."""
    words = word_source(key)
    uniform = Uniform(0, 0, _stream(words))
    bits = _BITS
    while True:
        found = _decided(m, uniform, bits)
        if found:
            return found
        bits *= 2


def _stream(words: Callable[[int, int], int]) -> Iterator[int]:
    index = 0
    while True:
        yield words(0, index)
        index += 1


def _decided(m: int, uniform: Uniform, bits: int) -> int:
    """The least j with U ln m < sum of (1 - 1/m)^i / i up to j; 0 where so many bits do not tell."""
    n, b = uniform.to(bits)
    low_log, high_log = _log_bounds(m, bits)
    below, above = n * low_log >> b, ((n + 1) * high_log >> b) + 1  # of U ln m, in units of 2^-bits
    low_power = high_power = 1 << bits
    low = high = 0
    for j in range(1, _FAR * m):
        low_power, high_power = low_power * (m - 1) // m, -(-high_power * (m - 1) // m)
        low, high = low + low_power // j, high - (-high_power // j)
        if above <= low:
            return j
        if below < high:
            return 0
    raise RuntimeError("best_of: a number of runs that has a probability below e^-100 was drawn: its key is not random")


def _log_bounds(m: int, bits: int) -> tuple[int, int]:
    """Integers with low <= ln(m) 2^bits <= high; decimals are rounded correctly, so one more unit is enough."""
    digits = bits  # more than three times as many as are needed
    context = context_of(digits)
    scaled = context.multiply(context.ln(Decimal(m)), Decimal(1 << bits))
    low, high = (int(scaled.to_integral_value(rounding=way)) for way in (ROUND_FLOOR, ROUND_CEILING))
    return low - 1, high + 1


__all__ = ["BestRun", "best_of", "number_of_runs"]
