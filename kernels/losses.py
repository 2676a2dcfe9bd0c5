"""The formulas of the losses, compiled: the value and the derivative of each, in the score <w, x> and the label.

Every loss stands in FORMULAS once, under the number by which compiled loops and C programs know it. Sums of gradients
(clipping.py) and of losses (covering_nets.py) are made from these rows, a loop for each, so that each is vectorised
by itself. What depends on the set and on the declared bounds (Lipschitz constant, smoothness, range) is with the
loss's class, in fastdp/optimizing/losses/.

Formulas are evaluated in one order on every machine: fma, and no libm.
"""

from typing import Any, NamedTuple

from .address_calls import call_at
from .compile import jit
from .elementary import exp_one
from .lanes import F64Array, fma
from .layout import LN2

SQUARED, LOGISTIC, HINGE, HUBER, CUSTOM, SQUARED_DISTANCE, ABSOLUTE_DEVIATION, LINEAR = range(8)

_A0, _A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8 = (2 / (2 * k + 3) for k in range(9))  # of 2 atanh


# --- each formula: its value, and the derivative of that in the score


@jit(inline=True)
def squared_value(score: float, label: float, parameter: float, address: int) -> float:
    """(score - label)^2."""
    r = score - label
    return r * r


@jit(inline=True)
def squared_derivative(score: float, label: float, parameter: float, address: int) -> float:
    """2 (score - label)."""
    return 2.0 * (score - label)


@jit(inline=True)
def logistic_value(score: float, label: float, parameter: float, address: int) -> float:
    """ln(1 + e^-z), z = label score; within 8 U (1 + |z|)."""
    z = label * score
    size = abs(z)
    e = exp_one(-(size if size < 700.0 else 700.0))
    # ln(1 + e) = 2 atanh(f / (2 + f)), after halving 1 + e above sqrt 2: ln_one, which takes any number apart, costs
    # as much with AVX-512 and twice as much with AVX2
    large = e > 0.41421356237309503
    f = 0.5 * e - 0.5 if large else e
    r = f / (2.0 + f)
    w = r * r
    w2 = w * w
    w4 = w2 * w2
    p = fma(w2, fma(w, _A7, _A6), fma(w, _A5, _A4))
    p = fma(w4, fma(w4, _A8, p), fma(w2, fma(w, _A3, _A2), fma(w, _A1, _A0)))
    tail = fma(r * w, p, 2.0 * r) + (LN2 if large else 0.0)
    return (0.0 if z > 0.0 else -z) + tail


@jit(inline=True)
def logistic_derivative(score: float, label: float, parameter: float, address: int) -> float:
    """-label / (1 + e^z), z = label score."""
    return -label / (1.0 + exp_one(min(max(label * score, -700.0), 700.0)))


@jit(inline=True)
def hinge_value(score: float, label: float, parameter: float, address: int) -> float:
    """max(0, 1 - label score)."""
    r = 1.0 - label * score
    return 0.0 if r <= 0.0 else r


@jit(inline=True)
def hinge_derivative(score: float, label: float, parameter: float, address: int) -> float:
    """-label where label score < 1, else 0."""
    return -label if label * score < 1.0 else 0.0


@jit(inline=True)
def huber_value(score: float, label: float, parameter: float, address: int) -> float:
    """r^2 for r = |score - label| up to the threshold `parameter`, and a line beyond."""
    r = abs(score - label)
    a = r if r < parameter else parameter
    return a * (2.0 * r - a)


@jit(inline=True)
def huber_derivative(score: float, label: float, parameter: float, address: int) -> float:
    """2 (score - label), within twice the threshold `parameter`."""
    return 2.0 * min(max(score - label, -parameter), parameter)


@jit(inline=True)
def called(score: float, label: float, parameter: float, address: int) -> float:
    """A C function double(double, double) at `address`: the value, or the derivative, of what is not listed here."""
    return call_at(address, score, label)


@jit(inline=True)
def score_itself(score: float, label: float, parameter: float, address: int) -> float:
    """The score: the value of LINEAR; and the distance of a record from w, which stands in place of a score."""
    return score


@jit(inline=True)
def one(score: float, label: float, parameter: float, address: int) -> float:
    """1: the derivative of LINEAR, whose sum is that of the points themselves."""
    return 1.0


class Formula(NamedTuple):
    """One row: the number of a loss phi(<w, x>, y), what a sum of its values is called, phi and its derivative."""

    number: int
    losses: str
    value: Any
    derivative: Any


FORMULAS = (
    Formula(SQUARED, "squared losses", squared_value, squared_derivative),
    Formula(LOGISTIC, "logistic losses", logistic_value, logistic_derivative),
    Formula(HINGE, "hinge losses", hinge_value, hinge_derivative),
    Formula(HUBER, "huber losses", huber_value, huber_derivative),
    Formula(CUSTOM, "custom losses", called, called),
    Formula(LINEAR, "scores", score_itself, one),
)


# --- a loop for each of them


def _loops(piece: str) -> Any:
    """fill(kind, parameter, address, scores, labels, out): `piece` of the formula of that number, for all entries."""
    fill: Any = _fill_zeros
    for formula in reversed(FORMULAS):
        fill = _loop_or(formula.number, getattr(formula, piece), fill)
    return fill


@jit(inline=True)
def _fill_zeros(kind: int, parameter: float, address: int, scores: F64Array, labels: F64Array, out: F64Array) -> None:
    out[:] = 0.0  # a number without a formula: never what stood there before


def _loop_or(number: int, piece: Any, otherwise: Any) -> Any:
    @jit(inline=True)
    def fill(kind: int, parameter: float, address: int, scores: F64Array, labels: F64Array, out: F64Array) -> None:
        if kind == number:
            for i in range(out.size):
                out[i] = piece(scores[i], labels[i], parameter, address)
        else:
            otherwise(kind, parameter, address, scores, labels, out)

    return fill


_fill_values, fill_derivatives = _loops("value"), _loops("derivative")
fill_derivatives.__doc__ = """`derivatives_into`, to be inlined."""


@jit
def losses_into(kind: int, parameter: float, address: int, scores: F64Array, labels: F64Array, out: F64Array) -> None:
    """The losses of scores and labels, to the same bits as in the sums of covering_nets.py.

    Shapes    scores, labels, out float64[n]; address of a C function double(double, double), for CUSTOM
    Cost      O(n): 0.15 ns a record, 1.2 of LOGISTIC; CUSTOM n calls
    Requires  for CUSTOM, a function that is there
    Used by   fastdp/optimizing/covering_nets.py, for the least loss that a record can have;
              fastdp/optimizing/losses/base.py
    Oracle    tests/oracles/optimizing.py::loss_of
    """
    _fill_values(kind, parameter, address, scores, labels, out)


@jit
def derivatives_into(
    kind: int, parameter: float, address: int, scores: F64Array, labels: F64Array, out: F64Array
) -> None:
    """The derivatives of losses in the score.

    Shapes    scores, labels, out float64[n]; address of a C function double(double, double), for CUSTOM
    Cost      O(n); CUSTOM n calls
    Requires  for CUSTOM, a function that is there
    Used by   fastdp/optimizing/losses/base.py
    Oracle    the function in Python
    """
    fill_derivatives(kind, parameter, address, scores, labels, out)
