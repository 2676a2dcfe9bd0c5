"""Cases of the learning room: how many records falsify each literal, and what is learned from such counts; boxes,
interior points, finite classes.

An element is a record, or a value. Half of the records are positive: those that have a 1 in each of the first k
columns. Others sum bytes or sort, or count the ones in words that they packed beforehand where the row says "packed";
what they find is exact and not private, except for OpenDP's and diffprivlib's medians.
"""

from ..registry import Case
from . import boxes, conjunctions, finite_classes, interior_points, literals, trees

CASES: tuple[Case, ...] = (
    *literals.CASES,
    *conjunctions.CASES,
    *boxes.CASES,
    *trees.CASES,
    *interior_points.CASES,
    *finite_classes.CASES,
)
