"""The bounds of `kernels/elementary.md` as problems for Gappa, and as definitions for `kernels/elementary.v`.

Both are made from the source of `kernels/elementary.py` as it runs: its coefficients, its operations and their order.
Gappa bounds what roundings do to each piece, given how far its polynomial is from the function; Coq proves that, and
that the pieces together keep the bounds that the module states. A number of `PIECES` is what the two say to each other.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from fastdp.kernels import elementary, layout
from tests.machinery.traces import Bits, Node, Tracer, Written, in_coq

U = Fraction(1, 2**53)
# What is proved by one and used by the other. Each note of elementary.md that is named here has the same number.
PIECES: dict[str, Fraction] = {
    "LN_REST": Fraction(78, 1000) * U,  # of the series in z: what is left out, and the rounded coefficients
    "LN_ADDEND": Fraction(107, 100) * U,  # of what is added to e LN2
    "LN2_REST": Fraction(209, 1000) * U,  # of LN2
    "LN2_PAIR_REST": Fraction(1, 2**109),  # of LN2 + LN2_LOW
    "REDUCED_OFF": Fraction(251, 1000) * U,  # of r
    "REDUCED_MOST": Fraction(34658, 100000),
    "EXP_REST": Fraction(6, 100) * U,
    "EXP_OFF": Fraction(13, 10) * U,
    "EXP_ROUGH_REST": Fraction(30, 10**11),
    "EXP_ROUGH_OFF": 4 * U,
    "PAIR_REDUCED_MOST": Fraction(136, 10**5),
    "PAIR_REDUCED_OFF": Fraction(1, 2**98),  # of 256 r
    "PAIR_SERIES_REST": Fraction(1, 2**91),
    "PAIR_SERIES_OFF": Fraction(1, 2**93),
    "PAIR_START_OFF": Fraction(126, 100) / 2**91,
    "PAIR_POWER_OFF": Fraction(1, 2**82),
    "PAIR_H_MOST": Fraction(1, 2**42),
    "PAIR_SUM_OFF": Fraction(72, 100) / 2**81,
    "PAIR_ADDITION": Fraction(1, 2**104),
}
_HEADER = """@rnd = float<ieee_64, ne>;
@pair_add = add_rel<104>;
@pair_multiply = mul_rel<103>;
"""
# Joldes, Muller and Popescu (2017): add_pairs is within 3 U^2 + 13 U^3 < 2^-104, multiply_pairs within 6 U^2 < 2^-103


@dataclass(frozen=True)
class Problem:
    """One script of Gappa: it ends with 0 where every goal is proved."""

    name: str
    script: str


def _decimal(x: Fraction, *, up: bool) -> str:
    """A decimal number that is not below (not above) a fraction, some 12 digits of it."""
    places = 12
    while x * 10**places < 10**11:
        places += 1
    scaled = x * 10**places
    return f"{-(-scaled.numerator // scaled.denominator) if up else scaled.numerator // scaled.denominator}e-{places}"


def given(name: str) -> str:
    """A piece as a hypothesis: no less than it is."""
    return _decimal(PIECES[name], up=True)


def shown(name: str) -> str:
    """A piece as a goal: no more than it is."""
    return _decimal(PIECES[name], up=False)


class _Script:
    """Lines of a problem; `rounded` and `exact` name the values of nodes with roundings and without."""

    def __init__(self, inputs: Mapping[Node, str], exact_inputs: Mapping[Node, str] | None = None) -> None:
        self._rounded = Written(dict(inputs), rounded=True, prefix="a")
        self._exact = Written(dict(exact_inputs or inputs), rounded=False, prefix="b")
        self.rounded, self.exact = self._rounded.of, self._exact.of

    def problem(self, name: str, first: str, logic: str, hints: str = "") -> Problem:
        return Problem(name, f"{_HEADER}{first}\n{self._rounded.gappa()}{self._exact.gappa()}{{ {logic} }}\n{hints}")


# --- the four functions as graphs


@dataclass(frozen=True)
class Graphs:
    """What the functions do; names are those of elementary.md."""

    m: Node
    exponent: Node  # as a float, before a constant is taken off
    logarithm: Node
    x: Node
    exponential: Node  # before the power of two
    rough: Node
    y: Node
    pairs: list[Node]  # the double-double operations of ln_pair, in their order
    constants: dict[str, float]


def graphs(coefficients: Mapping[str, float]) -> Graphs:
    """The functions, with some coefficients changed."""
    m, exponent, x, y = (Node("input", name=name) for name in ("m", "exponent", "x", "y"))
    floats = iter([m, exponent])
    trace = partial(Tracer, elementary, coefficients)
    tracer = trace({"ln_one": lambda x: y})
    tracer.run("ln_pair", Node("input", name="x"), Node("input", name="x_low"))
    found = [each.operation.removeprefix("pair_") for each in tracer.pairs]
    series = ["exact", "multiply", "add", "multiply", "add", "multiply"]
    if found != ["exact", "exact", "add", "add", *series, *["multiply", "add"] * 8, "add", "multiply", *["add"] * 3]:
        raise ValueError(f"ln_pair: its double-double operations are {found}, for which the problems are not made")
    return Graphs(
        m=m,
        exponent=exponent,
        logarithm=trace({"float_of": lambda bits: next(floats)}).run("ln_one", m),
        x=x,
        exponential=trace().run("exp_one", x).of,
        rough=trace().run("exp_rough", x).of,
        y=y,
        pairs=tracer.pairs,
        constants={name: coefficients.get(name, getattr(elementary, name)) for name in ("LN2", "LN2_LOW", "LOG2_E")},
    )


# --- the problems


def _logarithm(g: Graphs) -> list[Problem]:
    e, _, addend = g.logarithm.arguments
    z = addend.arguments[2].arguments[0]
    (least,) = struct.unpack("<d", struct.pack("<q", elementary._SQRT_HALF_BITS))
    series = _Script({g.m: "m"})
    logic = (
        f"m in [{least.hex()}, {(2 * least).hex()}] /\\ |{series.exact(addend)} - ln_m| <= {given('LN_REST')} -> "
        f"|{series.rounded(addend)} - ln_m| <= {shown('LN_ADDEND')} /\\ |{series.exact(z)}| <= 0.171573"
    )
    problems = [series.problem("ln_one, the series", "m = rnd(m_);", logic)]
    exponent = _Script({g.exponent: "k"})
    exact = f"{exponent.rounded(e)} - {exponent.exact(e)} in [0,0]"
    logic = f"k in [4503599627370497, 4503599627372544] /\\ @FIX(k, 0) -> {exact}"
    problems.append(exponent.problem("ln_one, the exponent", "", logic))
    for sign, span in (("positive", "[1, 1025]"), ("negative", "[-1025, -1]")):
        last = _Script({e: "k", addend: "s"})
        off = f"{last.rounded(g.logarithm)} -/ {last.exact(g.logarithm)}"
        logic = f"k in {span} /\\ @FIX(k, 0) /\\ |s| <= 0.3466 -> {off} in [-1b-53, 1b-53]"
        problems.append(last.problem(f"ln_one, the sum, {sign} exponent", "s = rnd(s_);", logic))
    return problems


_RANGES = {"negative": "[{}, -0.25]", "small": "[-0.25, 0.25]", "positive": "[0.25, {}]"}


def _reduction(g: Graphs, name: str, last: Node) -> list[Problem]:
    """x - n ln 2 as exp_one and exp_rough compute it."""
    r = last.arguments[1].arguments[2]
    minus_n, low, inner = r.arguments
    n, (_, ln2, _) = minus_n.arguments[0], inner.arguments
    t, (_, log2, rounder) = n.arguments[0], n.arguments[0].arguments
    problems = []
    for sign, span in _RANGES.items():
        script = _Script({g.x: "x"})
        at = script.rounded
        names = {"r": at(r), "n": at(n), "m": at(minus_n), "a": at(inner), "t": at(t)}
        values = {"LN2": ln2.hex(), "LOW": low.hex(), "LG": log2.hex(), "R": rounder.hex()}
        hints = (
            "{n} - x * {LG} -> ({n} - ({t} - {R})) + ({t} - (x * {LG} + {R}));\n"
            "{m} * {LN2} + x -> - ({n} - x * {LG}) / {LG} + {n} * (1 / {LG} - {LN2});\n"
            "{r} - (x - {n} * ln2) -> "
            "({r} - ({m} * {LOW} + {a})) + ({a} - ({m} * {LN2} + x)) + {n} * (ln2 - {LN2} - {LOW});\n"
        )
        logic = (
            f"x in {span.format(-708 if sign == 'negative' else 709)} /\\ "
            "|ln2 - {LN2} - {LOW}| <= " + given("LN2_PAIR_REST") + " -> @FIX({n}, 0) /\\ |{n}| <= 1023 /\\ "
            "|{r}| <= " + shown("REDUCED_MOST") + " /\\ |{r} - (x - {n} * ln2)| <= " + shown("REDUCED_OFF")
        )
        problems.append(
            script.problem(
                f"{name}, the reduction, {sign} x",
                "x = rnd(x_);",
                logic.format(**names, **values),
                hints.format(**names, **values),
            )
        )
    return problems


def _exponential(g: Graphs, name: str, last: Node, off: str) -> list[Problem]:
    script = _Script({last.arguments[1].arguments[2]: "r"})
    relative = f"{script.rounded(last)} -/ {script.exact(last)}"
    logic = f"|r| <= {given('REDUCED_MOST')} -> {relative} in [-{shown(off)}, {shown(off)}]"
    return [*_reduction(g, name, last), script.problem(f"{name}, the series", "r = rnd(r_);", logic, "$ r in 32;\n")]


def _pair(g: Graphs) -> list[Problem]:
    return [*_pair_reduction(g), *_pair_series(g)]


def _pair_reduction(g: Graphs) -> list[Problem]:
    first, low, once, twice = g.pairs[:4]
    minus_n, ln2 = first.arguments[0].arguments
    _, ln2_low = low.arguments[0].arguments
    n = minus_n.arguments[0]
    t, rounder = n.arguments
    q = t.arguments[0]
    minus_y, log2 = q.arguments
    problems = []
    for sign, span in _RANGES.items():
        script = _Script({g.y: "y"})
        at = script.rounded
        names = {"y": at(minus_y), "q": at(q), "t": at(t), "n": at(n), "m": at(minus_n), "a": at(once), "b": at(twice)}
        names |= {"f": at(first), "l": at(low)}
        values = {"LN2": ln2.hex(), "LOW": ln2_low.hex(), "LG": log2.hex(), "R": rounder.hex()}
        hints = (
            "{n} - {y} * {LG} -> ({n} - ({t} - {R})) + ({t} - ({q} + {R})) + ({q} - {y} * {LG});\n"
            "{y} + {f} -> - ({n} - {y} * {LG}) / {LG} + {n} * (1 / {LG} - {LN2});\n"
            "{b} - ({y} - {n} * ln2) -> ({b} - ({a} + {l})) + ({a} - ({y} + {f})) + {n} * (ln2 - {LN2} - {LOW});\n"
        )
        logic = (
            f"y in {span.format(-625 if sign == 'negative' else 625)} /\\ "
            "|ln2 - {LN2} - {LOW}| <= " + given("LN2_PAIR_REST") + " -> @FIX({n}, 0) /\\ "
            "|{b} * 1b-8| <= "
            + shown("PAIR_REDUCED_MOST")
            + " /\\ |{b} - ({y} - {n} * ln2)| <= "
            + shown("PAIR_REDUCED_OFF")
        )
        problems.append(
            script.problem(
                f"ln_pair, the reduction, {sign} y",
                "y = rnd(y_);",
                logic.format(**names, **values),
                hints.format(**names, **values),
            )
        )
    return problems


def _pair_series(g: Graphs) -> list[Problem]:
    third, start, power, result = g.pairs[4], g.pairs[9], g.pairs[26], g.pairs[29]
    series = _Script({g.pairs[5].arguments[1]: "r"})
    addend = third.arguments[0].arguments[1]
    logic = (
        f"|r| <= {given('PAIR_REDUCED_MOST')} -> |{series.rounded(addend)}| <= 0.1 /\\ "
        f"|{series.rounded(start)} - {series.exact(start)}| <= {shown('PAIR_SERIES_OFF')}"
    )
    doubling = _Script({start: "s"}, {start: "exact_s"})
    doubled = (
        f"|exact_s| <= 0.00137 /\\ |s - exact_s| <= {given('PAIR_START_OFF')} -> "
        f"|{doubling.rounded(power)} - {doubling.exact(power)}| <= {shown('PAIR_POWER_OFF')}"
    )
    scaled = g.pairs[27].arguments[0]
    newton = _Script({power: "p", scaled: "x"}, {power: "exact_p", scaled: "x"})
    summed = (
        f"x in [0.7, 1.42] /\\ |p - exact_p| <= {given('PAIR_POWER_OFF')} /\\ "
        f"|x * exact_p - 1| <= {given('PAIR_H_MOST')} -> "
        f"|{newton.rounded(result)} - {newton.exact(result)}| <= {shown('PAIR_SUM_OFF')}"
    )
    return [
        series.problem("ln_pair, the series", "", logic),
        doubling.problem("ln_pair, the doubling", "", doubled),
        newton.problem("ln_pair, the step", "", summed),
    ]


def _integers(coefficients: Mapping[str, float]) -> list[Problem]:
    """The smaller pieces: what is done to floats whose bits hold integers. Bits themselves are exact, and read here."""
    x, held, high, low = (Node("input", name=name) for name in ("x", "held", "high", "low"))
    rounded: list[Node] = []
    trace = partial(Tracer, elementary, coefficients)
    trace({"bits_of": lambda node: rounded.append(node) or Bits(), "ROUNDER_BITS": Bits()}).run("to_integer", x)
    (shifted,) = rounded
    small = trace({"float_of": lambda bits: held}).run("from_uint52", Bits())
    halves = iter([high, low])
    large = trace({"float_of": lambda bits: next(halves)}).run("from_uint64", Bits())
    to_bits, of_52, of_64 = _Script({x: "x"}), _Script({held: "k"}), _Script({high: "h", low: "l"})
    at, first = of_64.exact(large), large.arguments[0]
    return [
        to_bits.problem(
            "to_integer", "",
            f"x in [-2251799813685247, 2251799813685247] /\\ @FIX(x, 0) -> {to_bits.rounded(shifted)} - "
            f"{to_bits.exact(shifted)} in [0,0] /\\ {to_bits.rounded(shifted)} - x - 6755399441055744 in [0,0] /\\ "
            f"{to_bits.rounded(shifted)} in [1b52, 9007199254740991]",
            f"{to_bits.rounded(shifted)} - x - 6755399441055744 -> ({to_bits.rounded(shifted)} - "
            f"{to_bits.exact(shifted)}) + ({_the(shifted.arguments)} - 6755399441055744);\n",
        ),
        of_52.problem(
            "from_uint52", "",
            f"k in [1b52, 9007199254740991] /\\ @FIX(k, 0) -> {of_52.rounded(small)} - {of_52.exact(small)} in [0,0] "
            f"/\\ {of_52.exact(small)} - (k - 1b52) in [0,0]",
            f"{of_52.exact(small)} - (k - 1b52) -> 1b52 - {_the(small.arguments)};\n",
        ),
        of_64.problem(
            "from_uint64", "",
            f"h in [1b84, {2**84 + 2**64 - 2**32}] /\\ @FIX(h, 32) /\\ l in [1b52, {2**52 + 2**32 - 1}] /\\ @FIX(l, 0)"
            f" -> {of_64.rounded(first)} - {of_64.exact(first)} in [0,0] /\\ "
            f"{at} - ((h - 1b84) + (l - 1b52)) in [0,0] /\\ "
            f"{of_64.rounded(large)} -/ ({of_64.rounded(first)} + l) in [-1b-53, 1b-53]",
            f"{at} - ((h - 1b84) + (l - 1b52)) -> 1b84 + 1b52 - {_the(first.arguments)};\n",
        ),
    ]  # fmt: skip


def _the(arguments: tuple[Node | float, ...]) -> str:
    """The one number among the arguments of an operation."""
    (number,) = (each for each in arguments if not isinstance(each, Node))
    return float(number).hex()


def problems(coefficients: Mapping[str, float]) -> list[Problem]:
    """What Gappa has to prove, for the code with some coefficients changed."""
    g = graphs(coefficients)
    return [
        *_logarithm(g),
        *_exponential(g, "exp_one", g.exponential, "EXP_OFF"),
        *_exponential(g, "exp_rough", g.rough, "EXP_ROUGH_OFF"),
        *_pair(g),
        *_integers(coefficients),
    ]


# --- the definitions


def definitions(coefficients: Mapping[str, float]) -> str:
    """The module `elementary_code` of Coq: the polynomials without roundings, the bounds of the code, the pieces."""
    g = graphs(coefficients)
    addend = g.logarithm.arguments[2]
    functions = {
        "ln_series": (addend, {addend.arguments[2].arguments[0]: "z"}),
        "exp_series": (g.exponential, {g.exponential.arguments[1].arguments[2]: "r"}),
        "exp_rough_series": (g.rough, {g.rough.arguments[1].arguments[2]: "r"}),
        "pair_series": (g.pairs[9], {g.pairs[5].arguments[1]: "r"}),
        "pair_power": (g.pairs[26], {g.pairs[9]: "s"}),
        "pair_sum": (g.pairs[29], {g.pairs[27].arguments[0]: "x", g.pairs[26]: "p"}),
    }
    bounds = {
        name: getattr(elementary, name)
        for name in ("LN_FIXED", "LN_SLOPE", "EXP_BOUND", "EXP_ROUGH_BOUND", "LN_PAIR_BOUND")
    }
    numbers = {**g.constants, **{name: coefficients.get(name, value) for name, value in bounds.items()}}
    lines = ["Require Import Reals.", "Open Scope R_scope."]
    lines += [f"Definition {name} : R := {in_coq(value)}." for name, value in {"U": layout.U, **numbers}.items()]
    lines += [f"Definition {name} : R := {value.numerator} / {value.denominator}." for name, value in PIECES.items()]
    for name, (node, names) in functions.items():
        written = Written(dict(names), rounded=False, prefix="v", number=in_coq)
        lines.append(f"Definition {name} ({' '.join(names.values())} : R) : R := {written.coq(node)}.")
    return "\n".join(lines) + "\n"
