"""Learning a hypothesis privately: boxes, conjunctions, any finite class."""

from typing import TYPE_CHECKING

from ..support.public_paths import lazily

_HOMES = {
    "Chosen": "finite_class",
    "Hypothesis": "hypotheses",
    "LearnedBox": "boxes",
    "LearnedConjunction": "conjunctions",
}

if TYPE_CHECKING:
    from .boxes import LearnedBox as LearnedBox
    from .conjunctions import LearnedConjunction as LearnedConjunction
    from .finite_class import Chosen as Chosen
    from .hypotheses import Hypothesis as Hypothesis

__getattr__, __dir__ = lazily(globals(), _HOMES)
