"""Arithmetic of kernels as it is written, with every rounding: what Gappa and Coq are given.

The Python source of a kernel runs on symbols in place of numbers, with whatever coefficients its module holds. What
comes out is a graph of operations, which is written down twice: with a rounding around each, and without. Nothing here
knows what is to be proved; `roundings.py` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import FunctionType, ModuleType
from typing import Any

Operand = Any  # Node | float


@dataclass(eq=False, repr=False)
class Node:
    """One operation, rounded to float64 unless it is a double-double; or an input."""

    operation: str  # + - * / fma neg input high, or pair_add pair_multiply pair_exact pair_scale
    arguments: tuple[Operand, ...] = ()
    name: str = ""

    def __add__(self, other: Operand) -> Node:
        return Node("+", (self, other))

    def __radd__(self, other: Operand) -> Node:
        return Node("+", (other, self))

    def __sub__(self, other: Operand) -> Node:
        return Node("-", (self, other))

    def __mul__(self, other: Operand) -> Node:
        return _times(self, other)

    def __rmul__(self, other: Operand) -> Node:
        return _times(self, other)

    def __truediv__(self, other: Operand) -> Node:
        return _times(self, 1 / other) if _power_of_two(other) else Node("/", (self, other))

    def __neg__(self) -> Node:
        return Node("neg", (self,))


class High(Node):
    """The first float of a double-double."""


class Low(Node):
    """The second one: only operations on both read it."""


class Power:
    """A power of two: factors by it are exact."""


@dataclass(eq=False, repr=False)
class Scaled:
    """A number times a power of two."""

    of: Operand


class Bits:
    """The bits of a float, on which integer arithmetic is exact: what comes of them is an input of its own."""

    def _same(self, *_: Any) -> Bits:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __or__ = __ror__ = __lshift__ = __rshift__ = __and__ = _same


def _power_of_two(x: Operand) -> bool:
    return (
        isinstance(x, float)
        and x != 0
        and abs(Fraction(x)).numerator.bit_count() == 1 == abs(Fraction(x)).denominator.bit_count()
    )


def _times(x: Operand, y: Operand) -> Operand:
    if isinstance(y, Power):
        return Scaled(x)
    if isinstance(x, (High, Low)) and _power_of_two(y):
        return _half(type(x), Node("pair_scale", (x.arguments[0], y)))
    return Node("*", (x, y))


def _half(kind: type[Node], pair: Node) -> Node:
    return kind("high" if kind is High else "low", (pair,))


def as_pair(pair: Node) -> tuple[Node, Node]:
    """The two floats of a double-double."""
    return _half(High, pair), _half(Low, pair)


def whole(high: Operand, low: Operand) -> Operand:
    """The double-double of which these are the floats; a float alone is one."""
    if isinstance(high, High) and isinstance(low, Low):
        one, other = high.arguments[0], low.arguments[0]
        if one is other:
            return one
        if one.operation == other.operation == "pair_scale" and one.arguments == other.arguments:
            return one
    if isinstance(low, float) and low == 0:
        return high
    raise TypeError("a double-double of which the floats are not of one number")


@dataclass
class Tracer:
    """Runs kernels of a module on symbols; `coefficients` replace what the module has."""

    module: ModuleType
    coefficients: Mapping[str, float] = field(default_factory=dict)
    replaced: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    pairs: list[Node] = field(default_factory=list)

    def run(self, name: str, *arguments: Any) -> Any:
        """What a kernel returns for these symbols."""
        space: dict[str, Any] = {**vars(self.module)}
        for each, value in vars(self.module).items():
            inner = getattr(value, "py_func", None)
            if inner is not None and inner.__module__ == self.module.__name__:
                space[each] = FunctionType(inner.__code__, space)
        space |= {
            "fma": lambda a, b, c: Node("fma", (a, b, c)),
            "int64": lambda x: x,
            "uint64": lambda x: x,
            "bits_of": lambda x: Bits(),
            "_power_of_two": lambda t: Power(),
            "two_product": lambda a, b: self._pair("pair_exact", Node("product", (a, b))),
            "fast_two_sum": lambda a, b: self._pair("pair_exact", Node("sum", (a, b))),
            "add_pairs": lambda a, al, b, bl: self._pair("pair_add", whole(a, al), whole(b, bl)),
            "multiply_pairs": lambda a, al, b, bl: self._pair("pair_multiply", _scaled(a, al), _scaled(b, bl)),
            **self.replaced,
            **self.coefficients,
        }
        return space[name](*arguments)

    def _pair(self, operation: str, *arguments: Any) -> tuple[Node, Node]:
        self.pairs.append(Node(operation, arguments))
        return as_pair(self.pairs[-1])


def _scaled(high: Operand, low: Operand) -> Operand:
    """A double-double, also where both floats were multiplied by one power of two: then it is an input."""
    if isinstance(high, Scaled) and isinstance(low, Scaled):
        return Node("input", name="scaled")
    return whole(high, low)


# --- writing it down


@dataclass
class Written:
    """A graph as lines of Gappa, with roundings or without, or as an expression of Coq; `names` are where it stops."""

    names: dict[Node, str]
    rounded: bool
    prefix: str
    number: Callable[[float], str] = float.hex
    lines: list[tuple[str, str]] = field(default_factory=list)

    def of(self, node: Operand) -> str:
        """The name of a node, after the lines that define it."""
        if not isinstance(node, Node):
            return self.number(float(node))
        if node not in self.names:
            text = self._text(node)
            self.names[node] = f"{self.prefix}{len(self.lines)}"
            self.lines.append((self.names[node], text))
        return self.names[node]

    def _text(self, node: Node) -> str:
        if node.operation in ("input", "low"):
            raise ValueError(f"{node.operation} {node.name}: an input without a name")
        parts = [self.of(argument) for argument in node.arguments]
        plain = {
            "+": "({} + {})", "-": "({} - {})", "*": "({} * {})", "/": "({} / {})", "fma": "({} * {} + {})",
            "neg": "(- {})", "high": "({})", "sum": "({} + {})", "product": "({} * {})", "pair_exact": "({})",
            "pair_scale": "({} * {})", "pair_add": "({} + {})", "pair_multiply": "({} * {})",
        }[node.operation]  # fmt: skip
        if not self.rounded or node.operation in ("neg", "sum", "product", "pair_exact", "pair_scale"):
            return plain.format(*parts)
        if node.operation in ("pair_add", "pair_multiply"):
            return f"{node.operation}({parts[0]}, {parts[1]})"
        return f"rnd{plain.format(*parts)}"

    def gappa(self) -> str:
        return "".join(f"{name} = {text};\n" for name, text in self.lines)

    def coq(self, node: Node) -> str:
        last = self.of(node)
        return " ".join(f"let {name} := {text} in" for name, text in self.lines) + f" {last}"


def in_coq(x: float) -> str:
    """A float as a fraction of integers."""
    exact = Fraction(x)
    number = f"{abs(exact.numerator)}" + (f" / {exact.denominator}" if exact.denominator > 1 else "")
    return f"(- ({number}))" if exact < 0 else f"({number})"
