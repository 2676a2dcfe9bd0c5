"""Learning a hypothesis privately: boxes, conjunctions, decision trees, any finite class."""

from typing import TYPE_CHECKING

from ..support.public_paths import lazily

_HOMES = {
    "Chosen": "finite_class",
    "Hypothesis": "hypotheses",
    "LearnedBox": "boxes",
    "Leaf": "trees",
    "LearnedConjunction": "conjunctions",
    "LearnedDecisionList": "decision_lists",
    "LearnedTree": "trees",
    "Question": "trees",
    "Rule": "decision_lists",
}

if TYPE_CHECKING:
    from .boxes import LearnedBox as LearnedBox
    from .conjunctions import LearnedConjunction as LearnedConjunction
    from .decision_lists import LearnedDecisionList as LearnedDecisionList
    from .decision_lists import Rule as Rule
    from .finite_class import Chosen as Chosen
    from .hypotheses import Hypothesis as Hypothesis
    from .trees import Leaf as Leaf
    from .trees import LearnedTree as LearnedTree
    from .trees import Question as Question

__getattr__, __dir__ = lazily(globals(), _HOMES)
