"""The benchmark registry: names are unique, every target that was asked for is stated."""

from __future__ import annotations

import pytest

from fastdp.bench.cases import latency
from fastdp.bench.cases import memory as memory_cases
from fastdp.bench.cases.curves import curves
from fastdp.bench.cases.registry import (
    ROOMS,
    SIMD_LEVELS,
    Case,
    Target,
    cases,
    choose,
    faster,
    with_threads,
)
from fastdp.capi.library import why_not
from tests.bench.example import idle_case
from tests.bench.params import CASES


def test_names_are_unique_and_rooms_are_known() -> None:
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names)
    assert {case.room for case in cases()} == set(ROOMS)


@pytest.mark.parametrize("case", CASES)
def test_every_target_names_both_machines(case: Case) -> None:
    for target in case.targets:
        assert set(target.limits) == set(SIMD_LEVELS)
        assert all(limit > 0 for limit in target.limits.values())


WITHOUT_TRAFFIC = {  # arithmetic on public numbers, sums that are kept, many steps: bytes do not limit these
    *("compose-mixed", "compose-losses", "compose-losses-cold", "compose-losses-equal", "compose-choices-equal"),
    *("select-lazily", "plan-triples", "plan-wide", "release-planned", "release-pairs", "continual-step"),
    *("pmw-answer", "pmw-answer-measured", "pmw-answer-many", "pmw-update", "pmw-update-measured"),
    *("mwem", "mwem-small", "end-to-end-16", "end-to-end-23", "tree-fit", "tree-fit-wide"),
    *("answer-conjunctions", "net", "box-exponential"),
}


def test_rows_of_many_elements_say_what_they_cannot_do_without() -> None:
    bulk = {case.name: case.traffic for case in cases() if case.n >= 1000 and case.ours.threads == 1}
    assert {name for name, traffic in bulk.items() if traffic is None} == WITHOUT_TRAFFIC


def test_what_rows_cannot_do_without_is_some_bytes_or_words() -> None:
    for case in cases():
        if (traffic := case.traffic) is not None:
            assert traffic.read + traffic.copied + traffic.changed + traffic.words > 0, case.name
            assert traffic.held > 0, case.name
            assert case.ours.threads == 1, case.name  # as the limits are


def stated_in(room: str) -> set[tuple[str, str | None, float, float]]:
    """Work, rival, AVX-512, AVX2: every target of a room."""
    return {
        (case.name, target.rival, target.limits["avx512"], target.limits["avx2"])
        for case in choose((room,))
        for target in case.targets
    }


def test_the_targets_of_the_noise_room_are_all_there() -> None:
    """Work, rival, AVX-512, AVX2: what the noise room was asked for, row by row."""
    asked = {
        ("words", "numpy", 4.5, 1.5),
        ("generator", "numpy", 0.8, 0.6),
        ("laplace-float64-1", "numpy", 5.5, 3),
        ("laplace-float64-100", "numpy", 7, 3.5),
        ("laplace-small-call", "numpy", 4, 4),
        ("laplace-small-call", None, 2e-6, 2e-6),
        ("statistics-mean", "numpy", 4, 3),
        ("histogram", "numpy", 3, 2),
        ("partition", "numpy", 2, 2),
        *((f"count-by-{kind}", "pandas", 2, 2) for kind in ("integers", "strings", "text", "categories")),
        *((f"count-by-{kind}", "pandas", 2, 2) for kind in ("many", "scattered")),
        ("limit-rows", "pandas, the first", 5, 5),
        ("laplace-int64-extreme-values", "plain values", 1.05, 1.05),
        ("laplace-float64-extreme-values", "plain values", 1.05, 1.05),
    }
    for scale in ("1", "100", "2^20"):
        times = (6, 3) if scale == "2^20" else (10, 5)
        asked |= {(f"laplace-int64-{scale}-{place}", "numpy", *times) for place in ("new", "in-place")}
        asked |= {(f"laplace-int64-{scale}-new", "OpenDP", 2000, 1000)}
    asked |= {(f"laplace-int64-{scale}-new", "numpy exponentials", 3.4, 1.65) for scale in ("1", "100")}
    asked |= {(f"gaussian-int64-{sigma}", "numpy", 3.5, 1.8) for sigma in ("1", "4", "100", "1e+06")}
    asked |= {("laplace-two-threads", "one thread", 1.7, 1.7), ("import", "numpy", 1.2, 1.2)}
    asked |= {("first-number", None, 0.25, 0.25)}
    if why_not() is None:  # a C library can be built
        asked |= {("laplace-from-c-in-place", "Python", 1 / 0.9, 1 / 0.9)}
    assert stated_in("noise") == asked


def test_the_targets_of_the_accounting_room_are_all_there() -> None:
    stated = {(case.name, *((t.rival, *t.limits.values()) for t in case.targets)) for case in choose(("accounting",))}
    assert stated == {
        ("above-threshold", ("numpy", 9, 4.8)),
        ("above-threshold-one-query", (None, 2.5e-6, 2.5e-6)),
        ("sparse-vector", ("numpy", 3, 3)),
        ("sparse-vector-one-query", (None, 2.5e-6, 2.5e-6)),
        ("numeric-sparse", ("numpy", 3, 3)),
        ("compose-mixed",),
        ("compose-losses", ("dp-accounting", 10, 10)),
        ("compose-losses-cold", ("dp-accounting", 2, 2)),
        ("compose-losses-equal", ("dp-accounting", 20, 20)),
        ("compose-choices-equal", (None, 0.5, 0.5)),
        ("share-of-choices", (None, 0.25, 0.25)),
        ("charge-basic", ("no budget", 2.8, 2.8)),
        ("charge-zcdp", ("no budget", 2.8, 2.8)),
        ("charge-alone-basic", (None, 8e-6, 8e-6)),
        ("charge-alone-zcdp", (None, 8e-6, 8e-6)),
        ("charge-file", (None, 1e-3, 1e-3)),
        ("charge-file-in-memory", (None, 2.5e-4, 2.5e-4)),
    }
    assert {side.peer for case in choose(("compose",)) for side in case.rivals} == {"dp_accounting"}


def test_the_targets_of_the_selection_room_are_all_there() -> None:
    """Work, rival, AVX-512, AVX2: what the selection room was asked for, row by row."""
    asked = {
        ("select-opendp", "OpenDP", 400, 400),
        ("select-float64-1e5", "diffprivlib", 400, 400),
        ("select-small-call", "numpy argmax", 1.5, 1.5),
        ("select-gumbel", "numpy argmax", 10, 5.5),
        ("permute-and-flip", "numpy argmax", 3.5, 1.7),
        ("top-k", "OpenDP", 300, 150),
        ("top-k-epsilon-10", "OpenDP", 1000, 500),
    }
    for size in ("1e6", "1e7"):
        asked |= {(f"select-{kind}-{size}", "numpy argmax", 15, 12) for kind in ("float64", "int64")}
        asked |= {(f"select-{kind}-{size}", "numpy softmax", 7, 5) for kind in ("float64", "int64")}
    inputs = {"all equal": "all-equal", "one at +5": "one-at-5", "one at +20": "one-at-20", "one at +100": "one-at-100"}
    for name, case in inputs.items():  # each pair, in both directions
        asked |= {(f"select-time-{case}", other, 1.15, 1.15) for other in inputs if other != name}
    assert stated_in("selection") == asked
    assert {case.name for case in choose(("selection",)) if not case.targets} == {
        "select-many-draws",
        "select-lazily",
        "gumbel-max",
    }


def test_the_targets_of_the_answering_room_are_all_there() -> None:
    """Work, rival, AVX-512, AVX2: what the answering room was asked for, row by row."""
    asked = {
        ("mask-evaluate", "numpy", 4, 4),
        ("mask-evaluate", "numba sum", 1.25, 1.25),  # 0.8 of its speed
        ("mask-update", "numpy", 9, 9),
        ("conjunction-runs", "mask, two passes", 6, 6),
        ("conjunction-long-runs", "mask, two passes", 15, 15),
        ("conjunction-cells", "mask, two passes", 1.5, 1.5),
        ("marginals-binary", "numpy", 200, 200),
        ("mwem", "numpy", 20, 20),
        ("marginal", "numpy", 2, 2),
        ("pmw-answer", None, 12e-6, 12e-6),
        ("pmw-answer-measured", None, 12e-6, 12e-6),
        ("pmw-answer-mask", "kernels", 1.5, 1.5),
        ("pmw-answer-values", "kernels", 1.5, 1.5),
        ("pmw-answer-many", "one by one", 1, 1),
        ("pmw-update-measured", "kernels", 1.2, 1.2),
        ("mask-two-threads", "one thread", 1.5, 1.5),
        ("continual-step", None, 5e-3, 5e-3),
        ("bins", "np.searchsorted", 3, 3),
        ("ranges", "np.histogram, even bins", 2, 2),
        ("ranges", "np.histogram, edges", 2, 2),
        ("ranges-integers", "np.histogram, edges", 2, 2),
        ("nearest-tables", "numpy", 3, 3),
        ("plan-triples", None, 0.2, 0.2),
        ("plan-wide", None, 2.0, 2.0),
        ("release-planned", "equal noise", 1.5, 1.5),
        ("tree-fit", None, 2.0, 2.0),
        ("tree-sample", None, 1.0, 1.0),
        ("tree-sample", "numpy", 1.5, 1.5),
        ("end-to-end-16", None, 1.0, 1.0),
        ("end-to-end-23", None, 5.0, 5.0),
    }
    assert stated_in("answering") == asked
    assert {case.name for case in choose(("answering",)) if not case.targets} == {
        *("marginals-mixed", "spread-binary", "transform", "answer-slice", "answer-conjunctions", "sample"),
        *("mwem-small", "release-pairs", "pmw-update"),
        *("marginals-decimal", "spread-decimal", "spread-mixed"),
        *("conjunction-scattered", "answer-scattered", "values-update", "sample-searched"),
        "tree-fit-wide",
        *("conjunction-runs-cold", "conjunction-long-runs-cold"),
    }


def test_the_targets_of_the_optimizing_room_are_all_there() -> None:
    """Work, rival, AVX-512, AVX2: what the optimizing room was asked for, row by row."""
    asked = {
        ("descent-logistic-1e6x20-float32", "opacus", 14, 14),
        ("gradient-pass-squared", "numba sum", 1 / 0.6, 1 / 0.6),  # 0.6 of its speed
        ("gradient-pass-logistic", "numba sum", 2, 2),
        ("descent-squared-small", "numpy", 10, 6),
        ("descent-logistic-small", "numpy", 8, 4.8),
        ("descent-squared-tiny", "numpy", 1, 1),
        ("descent-two-threads", "one thread", 1.7, 1.7),
        ("least-squares", "numpy X.T @ X", 1.2, 1),
        ("least-squares-1e5x200", "numpy X.T @ X", 3, 1.5),
        ("vector-sum-gaussian", "numpy", 4, 3),
        ("vector-sum-laplace", "numpy", 4, 3),
        ("vector-mean-gaussian", "numpy", 4, 3),
        ("project-ball", "numpy", 1.2, 1.2),
        ("exact-distance", "numpy", 2, 2),
        ("net", "numpy", 2, 2),
        *((f"points-pass-{d}", "numba sum of these bytes", 2, 2) for d in (20, 50, 200, 500, 2_000)),  # half its speed
    }
    for size, avx512, avx2 in (
        ("1e6x20", 6, 5), ("1e5x50", 8, 5), ("1e4x200", 3.5, 2.2), ("4000x500", 3.5, 2.2), ("1000x2000", 3.5, 2.2),
        ("60000x784", 5, 3),
    ):  # fmt: skip
        for loss, part in (("squared", 1.0), ("logistic", 0.8)):
            asked |= {(f"descent-{loss}-{size}", "numpy", part * avx512, part * avx2)}
            asked |= {(f"descent-{loss}-{size}", "jax jit", 2, 2)}
            asked |= {(f"descent-{loss}-{size}-float32", "jax jit", 3, 2)}
    assert stated_in("optimizing") == asked
    assert {case.name for case in choose(("optimizing",)) if not case.targets} == {
        *("project-box", "descent-plain", "private-erm", "exact-deviation"),
    }


def test_the_targets_of_the_learning_room_are_all_there() -> None:
    """Work, rival, AVX-512, AVX2: what the learning room was asked for, row by row."""
    asked = {
        ("literals-packed", "numpy, packed", 6, 3.8),  # with AVX2: measured
        ("literals-100", "numpy", 8, 8),
        ("literals-103", "numpy", 8, 8),
        ("all-conjunctions", "numpy, packed", 10, 10),
        ("peel-10", "numpy", 0.5, 0.5),
        ("peel-10-guarded", "without a guard", 1.1, 1.1),
        ("interior-point-int64", "np.sort", 1.5, 1.5),
        ("interior-point-float64", "np.sort", 1.5, 1.5),
        ("quantiles", "fastdp.median", 4, 4),
        ("quantiles", "99 x fastdp.median", 10, 10),
        ("literals-two-threads", "one thread", 1.6, 1.6),
        ("tree", "fastdp.pack", 3, 3),
    }
    assert stated_in("learning") == asked
    without = {case.name: case for case in choose(("learning",)) if not case.targets}
    assert set(without) == {
        *("peel-1", "peel-3", "peel-30", "interior-point-candidates", "box-peel", "box-interior-point", "concepts"),
        *("conjunction-by-greedy", "conjunction-by-counts", "conjunction-by-elimination", "pack", "error", "quantile"),
        "quantiles-ties",
        *("conjunction-by-search", "box-grid", "decision-list"),
        *("box-exponential", "interior-point-prefix"),
    }
    assert [side.peer for side in without["interior-point-candidates"].rivals] == ["opendp", "diffprivlib"]


def test_a_target_without_its_rival_or_with_one_machine_only_is_refused() -> None:
    with pytest.raises(ValueError, match="limits="):
        Target("faster", "numpy", {"avx512": 2.0})
    with pytest.raises(ValueError, match="rival=None"):
        Target("within", None, {"avx512": 2.0, "avx2": 2.0})
    with pytest.raises(ValueError, match="rival='OpenDP'"):
        idle_case(targets=(faster("OpenDP", avx512=2, avx2=1),))


def test_choosing() -> None:
    assert choose(()) == cases()
    assert choose(("noise",)) == tuple(case for case in cases() if case.room == "noise")
    assert [case.name for case in choose(("words", "import"))] == ["words", "import"]
    with pytest.raises(ValueError, match="only='nose'"):
        choose(("nose",))


def test_names_are_unique_and_say_no_row_twice() -> None:
    names = [case.name for case in cases()] + [case.name for case in latency.latencies()]
    names += [f"{curve.name}@{x}" for curve in curves() for x in curve.points]
    names += [memory.name for memory in memory_cases.memories()]
    assert len(set(names)) == len(names)
    assert {curve.room for curve in curves()} <= set(ROOMS)
    assert set(latency.IN_ROWS) <= {case.name for case in cases()}


def test_the_headline_is_about_a_dozen_of_all_rooms() -> None:
    headline = [case for case in cases() if case.headline]
    assert 10 <= len(headline) <= 15
    assert {case.room for case in headline} == set(ROOMS)
    assert all(case.targets for case in headline)


def test_threads_are_further_sides_of_the_same_rounds() -> None:
    (case,) = choose(("laplace-int64-100-new",))
    both = with_threads(case, (1, 2))
    assert [(side.name, side.threads) for side in both.rivals[len(case.rivals) :]] == [("fastdp, 2 threads", 2)]
    assert both.rivals[-1].make is case.ours.make
    (alone,) = choose(("import",))
    assert with_threads(alone, (1, 2)) is alone  # a process of its own
