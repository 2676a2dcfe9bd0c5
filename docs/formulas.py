"""Formulas as a browser typesets them: MathML, made when the site is built, without a library or a network.

Pages and proof notes write formulas as plain text in backticks, `e^(-eta (max s - s_i)) <= 2^-l`, so that they read the
same in an editor, beside the code and on any host. Here every piece of code that is a formula becomes MathML: on proof
notes and the page of algorithms each that consists of known symbols, elsewhere those with a power, a root or a
logarithm. What is no formula, or not understood, stays code.
"""

# ruff: noqa: RUF001  (symbols of formulas)

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ", "lam": "λ",
    "lambda": "λ", "mu": "μ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "Gamma": "Γ", "Delta": "Δ",
    "oo": "∞",
}  # fmt: skip
FUNCTIONS = {"ln", "log", "log2", "exp", "max", "min", "Pr", "KL", "DLap", "Lap", "EM", "OPT", "trunc", "erfc", "tanh"}
SIGNS = {
    "<=": "≤", ">=": "≥", "!=": "≠", "+-": "±", "->": "→", "..": "…", "...": "…", "||": "‖", "-": "−", "*": "⋅",
    ":=": "≔", "sum": "∑", "int": "∫",
}  # fmt: skip
FENCES = {"abs": ("|", "|"), "floor": ("⌊", "⌋"), "ceil": ("⌈", "⌉")}
TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d[\d,]*\d(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)|(?P<name>[A-Za-z]+\d*)|(?P<prime>'+)"
    r"|(?P<sign>\.\.\.|\.\.|<=|>=|!=|:=|\+-|->|\|\||[-+*/=<>^_(){}\[\]|,;:%!#~∧∨¬≤≥×])"
)
RELATION = re.compile(r"<|>|≤|≥| [-+/=] ")
STRONG = re.compile(r"\^|\bsqrt\b|\bln\b|\bPr\[|\bsum\b")
CODE = re.compile(r"""["\\`@$&?]|==|\*\*|\w\.[A-Za-z]|[A-Za-z]{2,}_[A-Za-z]{2,}|\w=\S|[a-z]\w+\(\)|::""")
OPEN, CLOSE = "({[", ")}]"


class NotAFormula(ValueError):
    pass


def mathml(text: str, words: bool = False) -> str:
    """The formula as MathML; with `words` other words may stand in it. NotAFormula if it is none."""
    if CODE.search(text) or (re.fullmatch(r"[A-Za-z]{2,}", text) and text not in GREEK):
        raise NotAFormula(text)
    reader = _Reader(text, words)
    body = reader.row(None)
    plain = f'<annotation encoding="text/plain">{escape(text)}</annotation>'
    return f"<math><semantics><mrow>{body}</mrow>{plain}</semantics></math>"


class _Reader:
    """Reads tokens from left to right; every piece is a string of MathML."""

    def __init__(self, text: str, words: bool) -> None:
        self.words = words
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                raise NotAFormula(text)
            self.tokens.append((match.lastgroup or "", match[0]))
            at = match.end()
        self.at = 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def row(self, until: str | None) -> str:
        """Pieces up to a closing bracket, which is taken, or to the end."""
        pieces: list[str] = []
        apart = False
        while True:
            kind, token = self.peek()
            if kind == "end" or (until and token == until):
                if until and kind == "end":
                    raise NotAFormula("a bracket is not closed")
                self.at += 1
                return "".join(pieces)
            if kind == "space":
                self.at += 1
                apart = bool(pieces) and not pieces[-1].startswith("<mo")
                continue
            piece = self.scripts(self.atom())
            if apart and not piece.startswith("<mo"):
                pieces.append('<mspace width="0.2em"/>')
            apart = False
            pieces.append(piece)

    def atom(self) -> str:
        kind, token = self.peek()
        self.at += 1
        if kind == "number":
            return f"<mn>{token}</mn>"
        if kind == "name":
            return self.name(token)
        if token in OPEN and token:
            close = CLOSE[OPEN.index(token)]
            return f'<mrow><mo stretchy="false">{token}</mo>{self.row(close)}<mo stretchy="false">{close}</mo></mrow>'
        if kind != "sign" or token in ("^", "_", *CLOSE):
            raise NotAFormula(token)
        return f"<mo>{escape(SIGNS.get(token, token))}</mo>"

    def name(self, token: str) -> str:
        if token == "sqrt":
            return f"<msqrt>{self.argument()}</msqrt>"
        if token in FENCES and self.peek()[1] == "(":
            left, right = FENCES[token]
            return f'<mrow><mo stretchy="false">{left}</mo>{self.argument()}<mo stretchy="false">{right}</mo></mrow>'
        if token in SIGNS:
            return f"<mo>{SIGNS[token]}</mo>"
        letters, digits = re.fullmatch(r"([A-Za-z]+)(\d*)", token).groups()
        if token in FUNCTIONS:
            return f"<mi>{token}</mi>"
        if letters in GREEK or len(letters) == 1:
            letter = f"<mi>{GREEK.get(letters, letters)}</mi>"
            return f"<msub>{letter}<mn>{digits}</mn></msub>" if digits else letter
        if not self.words:
            raise NotAFormula(token)
        return f"<mtext>{token}</mtext>"

    def argument(self) -> str:
        """What follows a root: a group without its brackets, or one piece."""
        while self.peek()[0] == "space":
            self.at += 1
        if self.peek()[1] and self.peek()[1] in OPEN:
            close = CLOSE[OPEN.index(self.peek()[1])]
            self.at += 1
            return f"<mrow>{self.row(close)}</mrow>"
        return self.atom()

    def script(self) -> str:
        """What stands above or below: a group without its brackets, or a piece with its sign."""
        sign = ""
        if self.peek()[1] in ("-", "+-"):
            sign = f"<mo>{SIGNS[self.peek()[1]]}</mo>"
            self.at += 1
        if self.peek()[0] in ("space", "end"):
            raise NotAFormula("an empty script")
        return f"<mrow>{sign}{self.argument()}</mrow>"

    def scripts(self, base: str) -> str:
        while True:
            kind, token = self.peek()
            if kind == "prime":
                self.at += 1
                base = f"<msup>{base}<mo>{'′' * len(token)}</mo></msup>"
            elif token == "^":
                self.at += 1
                base = f"<msup>{base}{self.script()}</msup>"
            elif token == "_":
                self.at += 1
                base = f"<msub>{base}{self.script()}</msub>"
            else:
                return base


def is_mathematical(page: str) -> bool:
    """Whether what stands in backticks on a page is a formula rather than code, if it may be either."""
    return not page.startswith("docs/") or page == "docs/algorithms"


class Formulas(SphinxPostTransform):
    """Code that is a formula becomes one."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        mathematical = is_mathematical(self.env.docname)
        for node in list(self.document.findall(nodes.literal)):
            text = node.astext()
            strong = STRONG.search(text) is not None
            if not (mathematical or strong) or node.get("language"):
                continue
            try:
                found = mathml(text, words=strong or RELATION.search(text) is not None)
            except NotAFormula:
                continue
            node.replace_self(nodes.raw("", found, format="html"))


def setup(app: Any) -> dict[str, Any]:
    app.add_post_transform(Formulas)
    return {"parallel_read_safe": True}
