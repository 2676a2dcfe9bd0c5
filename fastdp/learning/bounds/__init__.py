"""The error bounds of the learners and their inverses, from public numbers. Public as `fastdp.bounds`.

Functions are named after the learners and take their parameters, with the number of records and of columns in place of
the data. A name with `_n` behind it solves for the number of records, one with `_epsilon` for epsilon.
"""

from .boxes import learn_box, learn_box_epsilon, learn_box_n
from .conjunctions import learn_conjunction, learn_conjunction_epsilon, learn_conjunction_n
from .decision_lists import learn_decision_list, learn_decision_list_epsilon, learn_decision_list_n
from .finite_class import learn_from_class, learn_from_class_epsilon, learn_from_class_n
from .trees import learn_tree, learn_tree_epsilon, learn_tree_n

__all__ = [
    "learn_box",
    "learn_box_epsilon",
    "learn_box_n",
    "learn_conjunction",
    "learn_conjunction_epsilon",
    "learn_conjunction_n",
    "learn_decision_list",
    "learn_decision_list_epsilon",
    "learn_decision_list_n",
    "learn_from_class",
    "learn_from_class_epsilon",
    "learn_from_class_n",
    "learn_tree",
    "learn_tree_epsilon",
    "learn_tree_n",
]
