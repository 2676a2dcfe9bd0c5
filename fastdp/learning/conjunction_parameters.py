"""What is public about the learning of a conjunction. conjunctions.md has the theorems of all methods.

An error bound counts records; it holds with probability 1 - beta if some conjunction of at most k literals is right
about all n of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from .privacy_parameters import PrivacyParameters


@dataclass(frozen=True)
class ConjunctionProblem:
    """n records of d columns, of which at most k decide; n stands for their number where that is private."""

    n: int
    d: int
    k: int
    privacy: PrivacyParameters
