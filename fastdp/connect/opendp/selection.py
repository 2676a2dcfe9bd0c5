"""Measurements that choose an index."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf
from typing import Any

from numpy.typing import NDArray

from ...mechanisms.permute_and_flip import draw_head
from ...mechanisms.scores import array_of_scores, some_allowed, tops_of
from ...mechanisms.selection import draw_one
from ...privacy.guarantees import BoundedRange
from ...randomness.keys import Randomness, fresh_key
from ...support.checks import positive
from ...support.columns import comes_from
from ...support.rounding import down, up
from ...support.shown import shown
from .inputs import InputDomain, input_distance
from .library import need_opendp


def make_exponential_mechanism(
    input_domain: Any,
    input_metric: Any,
    scale: float,
    *,
    output_measure: Any = None,
    rng: Randomness | None = None,
) -> Any:
    """An OpenDP `Measurement` that chooses an index with probability proportional to exp(score / scale).

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        vector_domain(atom_domain) of scores, or `array_domain`; a score of -inf forbids its candidate, and which
        candidates are forbidden must be public.
    input_metric : opendp.mod.Metric
        linf_distance(T); with monotonic=True where one change moves all scores in the same direction.
    scale : float > 0
        What scores are divided by.
    output_measure : opendp.mod.Measure, optional
        max_divergence(), the default, or zero_concentrated_divergence(), which is a quarter of what the former implies,
        and what to take where several choices are composed.
    rng : fastdp.Randomness, optional
        Where keys come from; by default the operating system.

    Returns
    -------
    opendp.mod.Measurement
        The measurement.

    Notes
    -----
    Guarantee    with r = 2 d_in / scale, or d_in / scale if monotonic: max_divergence r; zero_concentrated_divergence
                 s - 1 - ln s with s = r / (e^r - 1), less than r^2/8; rounded up to float64
    Proof        mechanisms/selection.md, theorem 1; privacy/guarantees.md, theorems 3 and 4.
    """
    dp = need_opendp()
    measure = dp.max_divergence() if output_measure is None else output_measure
    named = str(measure) if comes_from(measure, "opendp", "Measure") else shown(measure)
    concentrated = named == "ZeroConcentratedDivergence"
    if not concentrated and named != "MaxDivergence":
        raise ValueError(
            f"output_measure={named}: must be max_divergence() or zero_concentrated_divergence(); combinators convert"
        )

    def loss(ratio: Fraction) -> float:
        pure = up(ratio)
        return BoundedRange(pure).to_zcdp().rho if concentrated else pure

    def draw(scores: NDArray[Any], eta: float) -> int:
        some_allowed(tops_of(scores)[1])
        return draw_one(scores, fresh_key(rng), eta)

    return _choice(dp, input_domain, input_metric, scale, measure, loss, draw)


def make_permute_and_flip(input_domain: Any, input_metric: Any, scale: float, *, rng: Randomness | None = None) -> Any:
    """An OpenDP `Measurement` that chooses an index by permute-and-flip.

    OpenDP's report-noisy-max with exponential noise has the same law.

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        vector_domain(atom_domain) of scores, or `array_domain`; a score of -inf forbids its candidate, and which
        candidates are forbidden must be public.
    input_metric : opendp.mod.Metric
        linf_distance(T); with monotonic=True where one change moves all scores in the same direction.
    scale : float > 0
        What scores are divided by.
    rng : fastdp.Randomness, optional
        Where keys come from; by default the operating system.

    Returns
    -------
    opendp.mod.Measurement
        The measurement.

    Notes
    -----
    Guarantee    max_divergence; map(d_in) = 2 d_in / scale, or d_in / scale if the metric is monotonic, rounded up.
    Proof        mechanisms/selection.md, theorem 3.
    """
    dp = need_opendp()

    def draw(scores: NDArray[Any], eta: float) -> int:
        _, top = tops_of(scores)
        some_allowed(top)
        return draw_head(scores, top, fresh_key(rng), eta)

    return _choice(dp, input_domain, input_metric, scale, dp.max_divergence(), up, draw)


def _choice(
    dp: Any,
    input_domain: Any,
    input_metric: Any,
    scale: float,
    measure: Any,
    loss: Callable[[Fraction], float],
    draw: Callable[[NDArray[Any], float], int],
) -> Any:
    domain = InputDomain.of(input_domain)
    if domain.kind == "atom":
        raise ValueError(f"input_domain={input_domain}: must be a vector of scores")
    metric = str(input_metric) if comes_from(input_metric, "opendp", "Metric") else shown(input_metric)
    if not metric.startswith("LInfDistance("):
        raise ValueError(f"input_metric={metric}: must be linf_distance")
    factor = 1 if "monotonic" in metric else 2
    scale = positive("scale", scale, toward=inf)
    eta = down(1 / Fraction(scale))
    if not 2.0**-900 <= eta <= 2.0**900:
        raise ValueError(f"scale={shown(scale)}: must be between 2^-900 and 2^900")

    def function(arg: Any) -> int:
        return draw(array_of_scores(domain.read(arg)), eta)

    def privacy_map(d_in: float) -> float:
        return loss(factor * input_distance(d_in) / Fraction(scale))

    return dp.make_user_measurement(input_domain, input_metric, measure, function, privacy_map, "usize")
