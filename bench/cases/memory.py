"""Memory: which cases' calls are measured by what they hold beside their input (`harness/memory.py` does)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .registry import Case, cases


@dataclass(frozen=True)
class Memory:
    """A case of which both sides' peaks are of interest, and how large its input is."""

    case: str
    bytes_each: float  # of the input, for one of n
    most: float | None = None  # times the input that ours is to add: the target, if there is one

    @property
    def name(self) -> str:
        return f"memory-{self.case}"

    room = "memory"

    @property
    def of(self) -> Case:
        return next(case for case in cases() if case.name == self.case)

    @property
    def work(self) -> str:
        return f"memory: {self.of.work}"


@cache
def memories() -> tuple[Memory, ...]:
    """Cases with inputs of megabytes, and an input that numpy, too, takes as it is."""
    number = 8.0
    point = number * (20 + 1)  # coordinates and label
    return (
        Memory("laplace-int64-100-new", number),
        Memory("laplace-int64-100-in-place", number),
        Memory("gaussian-int64-100", number),
        Memory("above-threshold", number),
        Memory("select-float64-1e7", number),
        Memory("select-gumbel", number),
        Memory("permute-and-flip", number),
        Memory("mask-evaluate", number + 1),
        Memory("mask-update", number + 1),
        Memory("transform", number),
        Memory("descent-squared-1e6x20", point, most=0.3),
        Memory("descent-squared-1e6x20-float32", 4.0 * 20 + number, most=0.6),
        Memory("descent-squared-60000x784", number * 785, most=0.3),
        Memory("descent-squared-60000x784-float32", 4.0 * 784 + number, most=0.6),
        Memory("least-squares", point, most=0.3),
        Memory("literals-100", 100.0 + 1),
        Memory("literals-packed", (100.0 + 8) / 8),
        Memory("peel-10", 100.0 + 1),
        Memory("interior-point-int64", number),
        Memory("gaussian-float64-100", number),
        Memory("values-update", 2 * number),
        Memory("marginal", number),
        Memory("sample-searched", number),
        Memory("vector-sum-gaussian", 20 * number, most=0.3),
        Memory("descent-plain", point),
        Memory("exact-deviation", number),
        Memory("exact-distance", number),
        Memory("pack", 100.0),
        Memory("conjunction-by-greedy", 100.0 + 1),
        Memory("conjunction-by-counts", 100.0 + 1),
        Memory("conjunction-by-elimination", 100.0 + 1),
        Memory("error", 100.0 + 1),
        Memory("quantile", number),
        Memory("interior-point-prefix", number),
    )
