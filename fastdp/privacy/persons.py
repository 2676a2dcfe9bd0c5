"""What a guarantee for records guarantees for persons, of whom each has at most so many: ../records/persons.md."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from ..support import boundary, parameters
from ..support.checks import instance_of, integer
from ..support.rounding import down
from .conversions import geometric_sum
from .guarantees import A_GUARANTEE, AllOf, Guarantee
from .neighbors import kind_of, of_persons
from .origin import with_origin
from .profiles import with_profile

MOST_ROWS = 2**20  # of a person


def for_persons(guarantee: Guarantee, unit: str, *, at_most: int) -> Guarantee:
    """What a release guarantees for persons, if it reads at most so many records of each.

    Parameters
    ----------
    guarantee : Guarantee
        Of the release, for neighbours that differ in one record.
    unit : str
        The name of the column that tells persons apart.
    at_most : int >= 1
        How many records of a person it reads at most. With 1, a guarantee that is known for a person is stated.

    Returns
    -------
    Guarantee
        The form for groups of so many records, for neighbours that differ in one person: all rows of one are added or
        removed; under "replace-one", another's come for them.

    Raises
    ------
    ValueError
        Where a delta would be 1 or more, or the guarantee has no form for groups.

    Notes
    -----
    Proof    ../records/persons.md, theorem 1

    Examples
    --------
    >>> from fastdp import PureDP
    >>> from fastdp.privacy import for_persons
    >>> print(for_persons(PureDP(0.1, neighbors="add-remove"), "patient", at_most=5))
    0.5-DP, add-remove of a person (patient)
    """
    instance_of(Guarantee, "guarantee", guarantee, A_GUARANTEE)
    if kind_of(guarantee.neighbors) != guarantee.neighbors:
        raise ValueError(f"guarantee: {guarantee}: must be for records, and is for persons")
    at_most = integer("at_most", at_most, least=1, most=MOST_ROWS)
    return with_origin(_named(guarantee.group(at_most), unit), guarantee.origin)


def _named(guarantee: Guarantee, unit: str) -> Guarantee:
    if not isinstance(guarantee, AllOf):
        made = replace(guarantee, neighbors=of_persons(guarantee.neighbors, unit))
        profile = guarantee.profile  # of a group none is known
        return made if profile is None or profile.directions > 1 else with_profile(made, profile)
    parts, errors = [], []
    for part in guarantee.parts:
        try:
            parts.append(_named(part, unit))
        except ValueError as error:
            errors.append(error)
    if not parts:
        raise errors[0]
    return AllOf(*parts, theorem=guarantee.theorem)


def shares(at_most: int, epsilon: Any, delta: Any) -> tuple[Any, Any]:
    """What a release may have for a record, if it is to have these for a person; what is out of range as it is."""
    try:
        whole = parameters.epsilon(epsilon)
        epsilon = down(Fraction(whole) / at_most)
        if delta is not None:
            delta = down(Fraction(parameters.delta_or_none(delta)) / Fraction(geometric_sum(epsilon, at_most)))
    except (ValueError, OverflowError):  # the function itself says what is wrong
        pass
    return epsilon, delta


boundary.when_of_persons(shares)
