"""What C programs can call: one list, of which the header, the library and the dispatch are made.

A function returns a status and gets its results through pointers. An argument is a number, or an array whose shape is
made of other arguments; the dispatch checks lengths and pointers (`embedded.py`), and `calls.py` does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..optimizing.losses.registry import ROWS
from ..optimizing.sets import NAMES, number_of
from . import calls

VERSION = 1  # of the whole header; a host that was compiled for another one is refused

STATUS = {
    "OK": "done",
    "INVALID": "an argument breaks its rule; nothing was drawn, no array was changed",
    "DOMAIN": "a value or record is outside what was declared; nothing was drawn, no array was changed",
    "REFUSED": "a budget that is open in the host's Python has not enough left; nothing was drawn",
    "MEMORY": "not enough memory; what was to be written means nothing",
    "START": "Python or fastdp could not be started; it will not be tried again",
    "INTERRUPTED": "the host's Python was interrupted; what was to be written means nothing",
    "INTERNAL": "a defect of fastdp; what was to be written means nothing",
}

CONSTANTS = {
    "losses": {row.name: row.number for row in ROWS},
    "sets": {name: number_of(name) for name in NAMES},
}

STRUCTS = {
    "laplace_plan": ("extra", "scale", "offset", "offset_low", "fixed", "fixed_pair", "grid"),
    "gaussian_plan": ("extra", "sigma", "grid", "law[15]"),
}
"""Structs of doubles: noise as the raw kernels take it."""


@dataclass(frozen=True)
class Argument:
    """One argument of a function.

    ctype     of the number, or of an entry of the array
    shape     of an array: arguments that are lengths, or numbers; None for a number
    written   whether the array is written to
    optional  whether a pointer may be NULL, for which the call gets None
    least     of a length
    """

    name: str
    ctype: str
    shape: tuple[str | int, ...] | None = None
    written: bool = False
    optional: bool = False
    least: int | None = None

    @property
    def declared(self) -> str:
        """As C declares it."""
        if self.shape is None:
            return f"{self.ctype} {self.name}"
        return f"{'' if self.written else 'const '}{self.ctype} *{self.name}"


@dataclass(frozen=True)
class Function:
    """One function: its name without `fastdp_`, its comment in the header, its arguments, what it calls."""

    name: str
    about: str
    arguments: tuple[Argument, ...]
    call: Callable[..., Any]


def number(name: str, ctype: str = "double") -> Argument:
    return Argument(name, ctype)


def length(name: str, least: int = 0) -> Argument:
    return Argument(name, "int64_t", least=least)


def read(name: str, ctype: str, *shape: str | int, optional: bool = False) -> Argument:
    return Argument(name, ctype, shape, optional=optional)


def write(name: str, ctype: str, *shape: str | int) -> Argument:
    return Argument(name, ctype, shape, written=True)


_RNG, _N = number("rng", "int64_t"), length("n")
_SENSITIVITY, _EPSILON, _DELTA, _RHO = number("sensitivity"), number("epsilon"), number("delta"), number("rho")
_RESOLUTION = number("resolution")

# groups of arguments that several functions share, in their order
_VALUES = (read("values", "T", "n"), _N, _SENSITIVITY)
_NOISY = (_RESOLUTION, _RNG, write("out", "T", "n"))
_CHOICE = (
    read("scores", "T", "n"), _N, _SENSITIVITY, _EPSILON, number("monotonic", "int"), _RNG,
    write("chosen", "int64_t", 1),
)  # fmt: skip


def _undecided(plan: str) -> tuple[Argument, ...]:
    """What a raw kernel was called with, and which entries it left out."""
    return (
        read("key", "uint32_t", 8), number("block", "int64_t"), read("plan", plan, 1), write("out", "T", "n"), _N,
        read("undecided", "int64_t", "count"), length("count"),
    )  # fmt: skip


def _both(
    name: str, about: str, arguments: tuple[Argument, ...], call: Callable[..., Any], of_floats: str = ""
) -> tuple[Function, ...]:
    """The function for int64 and for double entries; `T` is the type of an entry, and integers have no resolution."""
    return tuple(
        Function(
            f"{name}_{suffix}",
            about if suffix == "i64" else f"The same for doubles. {of_floats}".strip(),
            tuple(
                replace(a, ctype=ctype) if a.ctype == "T" else a
                for a in arguments
                if suffix == "f64" or a is not _RESOLUTION
            ),
            call,
        )
        for suffix, ctype in (("i64", "int64_t"), ("f64", "double"))
    )


_ON_GRID = """They are put on a grid first, a power of two: `resolution`, or where that is 0 a fine one. Its rounding is
charged."""

FUNCTIONS: tuple[Function, ...] = (
    Function(
        "rng_seeded",
        """A source of keys that are the same in every run, FOR TESTS: whoever knows the seed can remove the noise. To
        be given as `rng`, where 0 asks the operating system for a fresh key: what every release should do.""",
        (number("seed", "int64_t"), write("rng", "int64_t", 1)),
        calls.rng_seeded,
    ),
    Function("rng_free", "Forget a seeded source.", (_RNG,), calls.rng_free),
    Function(
        "random_words",
        "Random 64-bit words: AES-256 in counter mode, or ChaCha20, under a fresh key.",
        (_RNG, write("out", "uint64_t", "n"), _N),
        calls.random_words,
    ),
    *_both(
        "laplace",
        """Laplace noise of scale sensitivity / epsilon, by exact discrete draws: epsilon-DP for values of L1
        sensitivity `sensitivity`. Results saturate. out may be values.""",
        (*_VALUES, _EPSILON, *_NOISY),
        calls.laplace,
        of_floats=_ON_GRID,
    ),
    *_both(
        "gaussian",
        """Gaussian noise by exact discrete draws: (epsilon, delta)-DP for values of L2 sensitivity `sensitivity`.
        Results saturate. out may be values.""",
        (*_VALUES, _EPSILON, _DELTA, *_NOISY),
        calls.gaussian,
        of_floats=_ON_GRID,
    ),
    *_both(
        "gaussian_zcdp",
        "Gaussian noise as above, rho-zCDP.",
        (*_VALUES, _RHO, *_NOISY),
        calls.gaussian_zcdp,
        of_floats=_ON_GRID,
    ),
    *_both(
        "exponential_mechanism",
        """Choose candidate i with probability proportional to exp(eta scores[i]), eta = epsilon / (2 sensitivity), or
        epsilon / sensitivity if `monotonic` is 1, not 0: epsilon-DP, bounded range epsilon. -inf forbids a
        candidate. *chosen counts from 0.""",
        _CHOICE,
        calls.exponential_mechanism,
    ),
    *_both(
        "permute_and_flip",
        "Choose a candidate by permute-and-flip; arguments as of the exponential mechanism. epsilon-DP.",
        _CHOICE,
        calls.permute_and_flip,
    ),
    Function(
        "literal_counts",
        """NOT PRIVATE. Of n records of d bytes, 0 or 1, and their labels, 0 or 1: how many of each label falsify each
        literal. Literal 2 j asks for a 1 in column j, literal 2 j + 1 for a 0. Replacing a record changes each
        count by at most 1.""",
        (
            read("records", "uint8_t", "n", "d"), read("labels", "uint8_t", "n"), length("n", 1), length("d", 1),
            write("of_negatives", "int64_t", "d", 2), write("of_positives", "int64_t", "d", 2),
        ),
        calls.literal_counts,
    ),
    Function(
        "weights_evaluate_mask",
        """Multiplicative weights over cells. The share of the weights in the cells where mask is not 0; `total`
        is the sum of all weights, as an update leaves it, or 0 to add it up.""",
        (
            read("weights", "double", "cells"), length("cells", 1), read("mask", "uint8_t", "cells"), number("total"),
            write("value", "double", 1),
        ),
        calls.evaluate_mask,
    ),
    Function(
        "weights_update_mask",
        """Multiply the weights by e^rate, |rate| at most 300, where mask is not 0; *total is their sum after
        that. They are scaled by a constant when the sum leaves 1e-20 to 1e20, and mean nothing after FASTDP_DOMAIN.""",
        (
            write("weights", "double", "cells"), length("cells", 1), read("mask", "uint8_t", "cells"), number("rate"),
            write("total", "double", 1),
        ),
        calls.update_mask,
    ),
    Function(
        "weights_evaluate_values",
        "The mean of `values` by these weights; `total` as above.",
        (
            read("weights", "double", "cells"), length("cells", 1), read("values", "double", "cells"), number("total"),
            write("value", "double", 1),
        ),
        calls.evaluate_values,
    ),
    Function(
        "weights_update_values",
        "Multiply every weight by e^(rate value), values within 0 and 1; the rest as above.",
        (
            write("weights", "double", "cells"), length("cells", 1), read("values", "double", "cells"), number("rate"),
            write("total", "double", 1),
        ),
        calls.update_values,
    ),
    Function(
        "gradient_sum",
        """NOT PRIVATE. The sum of the gradients at w of n records of d doubles, each shortened to L2 norm `clip`, in
        units of `resolution`, a power of two: out[j] resolution is the sum of coordinate j. It is made of integers, so
        replacing a record changes it by at most 2 clip / resolution in L2 (adding or removing one: half of that),
        exactly, and fastdp_gaussian_i64 with that sensitivity makes it private. labels: NULL for losses of distances;
        -1 or 1 (or 0 or 1) for LOGISTIC and HINGE. `parameter` is the threshold of HUBER and otherwise 0. `derivative`
        is the derivative of CUSTOM, otherwise NULL: it is called from several threads at once, and must depend on its
        arguments alone.""",
        (
            read("records", "double", "n", "d"), read("labels", "double", "n", optional=True), length("n", 1),
            length("d", 1), read("w", "double", "d"), number("loss", "int"), number("parameter"),
            number("derivative", "fastdp_derivative"), number("clip"), number("resolution"),
            write("out", "int64_t", "d"),
        ),
        calls.gradient_sum,
    ),
    Function(
        "project_ball",
        "Move a point to the nearest one within L2 distance `radius` of a center, NULL for the origin.",
        (write("point", "double", "d"), length("d", 1), read("center", "double", "d", optional=True), number("radius")),
        calls.project_ball,
    ),
    Function(
        "project_ball_l1",
        "The same by the L1 norm.",
        (write("point", "double", "d"), length("d", 1), read("center", "double", "d", optional=True), number("radius")),
        calls.project_ball_l1,
    ),
    Function(
        "project_box",
        "Move a point to the nearest one between two corners.",
        (
            write("point", "double", "d"), length("d", 1), read("lower", "double", "d"), read("upper", "double", "d"),
        ),
        calls.project_box,
    ),
    Function(
        "project_simplex",
        "Move a point to the nearest one whose coordinates are at least 0 and add up to `total`.",
        (write("point", "double", "d"), length("d", 1), number("total")),
        calls.project_simplex,
    ),
    Function(
        "plan_laplace_i64",
        "For the raw kernels: what they need to know of the noise that fastdp_laplace_i64 adds.",
        (_SENSITIVITY, _EPSILON, write("plan", "fastdp_laplace_plan", 1)),
        calls.plan_laplace_i64,
    ),
    Function(
        "plan_laplace_f64",
        "The same for doubles, of which the release has n: the grid depends on that.",
        (_N, _SENSITIVITY, _EPSILON, _RESOLUTION, write("plan", "fastdp_laplace_plan", 1)),
        calls.plan_laplace_f64,
    ),
    Function(
        "plan_gaussian_i64",
        "For the raw kernels: the noise that fastdp_gaussian_i64 adds to n entries.",
        (_N, _SENSITIVITY, _EPSILON, _DELTA, write("plan", "fastdp_gaussian_plan", 1)),
        calls.plan_gaussian_i64,
    ),
    Function(
        "plan_gaussian_f64",
        "The same for doubles.",
        (_N, _SENSITIVITY, _EPSILON, _DELTA, _RESOLUTION, write("plan", "fastdp_gaussian_plan", 1)),
        calls.plan_gaussian_f64,
    ),
    *_both(
        "settle_laplace",
        """For the raw kernels: add the noise that a kernel left out, to the `count` entries that it listed in
        `undecided`. key, block, plan and out are those of that call.""",
        _undecided("fastdp_laplace_plan"),
        calls.resolve_undecided,
    ),
    *_both(
        "settle_gaussian",
        "The same of Gaussian noise, to whole blocks.",
        _undecided("fastdp_gaussian_plan"),
        calls.resolve_undecided,
    ),
)  # fmt: skip
