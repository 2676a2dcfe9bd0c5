"""Convex sets to minimise over: balls, boxes, the simplex, and sets of the user's own.

A set knows its nearest points, its size and its nets; what is minimised over it, and by whom, is not its affair. Sets
are public. Balls around one number and boxes between two have as many dimensions as the records: `of_dimension` gives
them theirs.

base.py has the base class, which is the checklist for a new set; nets.py what nets are made with; each other file a
set. A set's `projection` is None unless compiled loops know its nearest points: then it has a number in
kernels/projections.py and that constant's name in NAMES, which C reads, too.
"""

from ...support.public_paths import publish
from .ball import Ball
from .base import NAMES as NAMES
from .base import ConvexSet
from .base import Projection as Projection
from .base import Vector as Vector
from .base import checked_net as checked_net
from .base import given_point as given_point
from .base import nearest as nearest
from .base import nearest_of as nearest_of
from .base import number_of as number_of
from .base import point_of as point_of
from .base import projection_of as projection_of
from .box import Box
from .nets import Net as Net
from .projected import Projected
from .simplex import Simplex

__all__ = ["Ball", "Box", "ConvexSet", "Projected", "Simplex"]

publish(globals(), __all__, "fastdp.sets")
