"""Compiling ahead of time: every kernel that the public functions reach, at a moment that the caller chooses.

Kernels compile at their first call; with the disk cache, once per machine. `warmup` makes those first calls, as the
public functions make them, on a few numbers of fresh secure noise that nobody sees. It never touches data or a budget.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from .support.progress import Progress, reporting

if TYPE_CHECKING:
    from numpy.typing import NDArray


def warmup(progress: Progress = None) -> None:
    """Compile every kernel, or load it from the disk cache, so that no later call waits for the compiler.

    Cost      tens of seconds on a machine that has never run this version of fastdp, well under a second after that
    progress  None; True for a bar (extra `[cli]`); or a callable (done, total, what is being compiled)

    Examples:
    >>> import fastdp
    >>> fastdp.warmup()
    """
    with reporting(progress, "compiling") as report:
        steps = _steps()
        for done, (name, step) in enumerate(steps):
            report(done, len(steps), name)
            step()
        report(len(steps), len(steps), "")


def _steps() -> list[tuple[str, Callable[[], object]]]:
    """(what it compiles, a call that does): one for each kernel and argument type that a public call can reach."""
    import numpy as np

    from .answering.dense_weights import PRECISIONS, DenseWeights, Precision
    from .answering.entropic_fit import Residuals, fit_entropic
    from .answering.factored_weights import FactoredWeights
    from .answering.marginal_transform import marginal_tables, spread_tables
    from .answering.queries import Conjunction, Linear, Mask, marginals
    from .answering.synthetic_distribution import SyntheticDistribution
    from .kernels import function_pointers as exported
    from .kernels import literals, losses, nets
    from .kernels.chacha20 import word_one
    from .learning.all_boxes import BoxChoice
    from .learning.examples import Examples
    from .learning.exhaustive import choose_conjunction
    from .mechanisms import noise, scores
    from .mechanisms.buckets import Buckets
    from .mechanisms.gumbel_max import Race
    from .mechanisms.permute_and_flip import draw_head
    from .optimizing.descent import walk
    from .optimizing.losses import AbsoluteDeviation, Logistic, SquaredDistance
    from .optimizing.points import Points, Steps
    from .optimizing.problem import Problem
    from .optimizing.sets import Box
    from .randomness.keys import Randomness
    from .records.domain import Domain
    from .records.encoding import histogram
    from .records.number_line import NumberLine
    from .records.packed import pack

    def read_only(array: NDArray[Any]) -> NDArray[Any]:  # a type of its own to the compiler
        array.flags.writeable = False
        return array

    def generator() -> None:
        draw = Randomness().generator()
        draw.integers(0, 2**64, dtype=np.uint64, size=3)
        draw.standard_normal(3)

    def choose(array: NDArray[Any]) -> None:
        key = Randomness().key()
        tops, top = scores.tops_of(array)
        race = Race(key, 1.0, 2)
        race.admit(array.dtype)
        race.run(array, 0, tops, top)
        scores.allowed(array)
        Buckets(array, 1.0).draw(key, 1)
        draw_head(array, top, key, 1.0)

    def count(sizes: tuple[int, ...]) -> None:
        domain = Domain({f"a{i}": size for i, size in enumerate(sizes)})
        histogram(np.zeros((3, len(sizes)), np.int64), domain)

    def weigh(precision: Precision) -> None:
        domain, counts = Domain.binary(12), np.zeros(2**12, np.int64)
        last = [f"v{i}" for i in range(7, 13)]  # six of the last attributes: cells that are taken one by one
        for names in (["v1"], ["v12"], last):  # long runs, a pattern
            product = Conjunction(dict.fromkeys(names, 1)).bind(domain)
            weights = DenseWeights(domain, precision)
            weights.evaluate(product)
            weights.scale(product, 0.1)
            product.count(counts)
        for query in (Mask(counts), Linear(counts)):
            bound = query.bind(domain)
            weights.evaluate(bound)
            weights.scale(bound, 0.1)
            bound.count(counts)
        weights.total = 1e99
        weights.scale(product, 0.1)
        weights.add_into(np.zeros(2**12), 1.0)

    def tabulate() -> None:
        for domain, k in ((Domain.binary(12), 3), (Domain(a=3, b=2, c=4), 2)):
            workload = marginals(domain, k)
            for dtype in (np.int64, np.float64):
                tables = marginal_tables(np.ones(domain.size, dtype), domain, workload)
            spread_tables(tables, domain, workload)

    def pack_codes() -> None:
        for dtype in (np.uint8, np.uint16, np.uint32):
            out = np.zeros((4, 1), np.uint64)
            literals.pack_allowed_into(np.zeros(3, dtype), np.ones(1, np.uint8), out[0])
            literals.count_all(out, np.zeros(1, np.int64))

    def fit() -> None:
        domain = Domain(a=3, b=2, c=4)
        people = np.zeros((100, 3), np.uint8)
        # the constructor and the fit charge nobody here: a block of a budget may be open around this
        residuals = Residuals(marginals(domain, 2))
        target = [table / 100.0 for table in marginal_tables(histogram(people, domain), domain, residuals.workload)]
        fitted = fit_entropic(target, residuals, 1e-3)
        for weights in (DenseWeights(domain), FactoredWeights(domain), fitted.probabilities):
            SyntheticDistribution(weights, domain).sample(3)

    def choose_box() -> None:
        key = Randomness().key()
        BoxChoice(np.zeros((1, 1), np.uint64), np.ones(1, np.bool_), (1,), Fraction(1)).draw(key)

    def learn() -> None:
        key, y = Randomness().key(), np.array([1, 0, 1])
        some = pack(np.eye(3, 2, dtype=np.uint8))
        examples = Examples(some, y)
        examples.read(keep=True)
        choose_conjunction(examples, 2, 1.0, key, lambda: None, lambda *_: None)
        numbers = np.zeros(0, np.int64), np.zeros(0, np.int64)
        whole = np.zeros((2, 2), np.uint64)
        for columns in (whole, whole[:, :1]):  # of all words, and of some, whose rows lie apart
            one = columns[0].copy()
            literals.satisfying_into(columns, *numbers, one)
            literals.count_among_into(columns, one, one, np.zeros((2, 2), np.int64))
            prefixes = np.zeros((1, literals.WIDE), np.uint64)
            literals.count_subsets_into(columns, one, 1, np.zeros(2, np.int64), prefixes, np.zeros(2, np.int64))
        for dtype in (np.int64, np.uint64, np.float64):
            order = NumberLine.of(np.dtype(dtype), 64, None, "warmup")
            order.positions(np.zeros(3, dtype), "raise", "warmup")

    def add_losses() -> None:
        columns, net, one, out = np.zeros((4, 3)), np.zeros((4, 2)), np.ones(3), np.zeros(2, np.int64)
        for number, add in nets.ADDERS.items():
            if number != losses.CUSTOM:
                add(columns, one, one, net, 1.0, 0, 1.0, 1.0, out)
        losses.losses_into(0, 1.0, 0, one, one, np.empty(3))

    def descend(loss: Any, dtype: Any) -> None:
        for d in (2, 20):  # few columns, and more of them
            points = Points(np.ones((3, d), dtype), None if loss.labels is None else np.ones(3), loss, "raise")
            points.check()
            problem = Problem.of(loss, Box(-1, 1), d)
            step = Steps(1.0, 0.0, np.ones(1), problem.over.projection)
            noise = np.zeros((1, d), np.int64)
            points.descend(problem.start, 1.0, 1.0, noise, step)
        points.gradients(problem.start, 1.0, 1.0)
        walk(points.plain_gradients, problem, step, noise, None, lambda *_: None)
        walk(lambda w: points.gradients(w, 1.0, 1.0), problem, step, noise, None, lambda *_: None)
        points.moments(1.0, 1.0, 1.0)
        problem.over.project(problem.start)

    steps: list[tuple[str, Callable[[], object]]] = [
        ("random words", lambda: Randomness().words(3)),
        ("one random word", lambda: word_one(Randomness().key(), 0, 0)),
        ("numpy generator", generator),
    ]
    steps += [(f"counting records of {sizes} values", partial(count, sizes)) for sizes in ((2, 2), (300,), (70_000,))]
    steps += [(f"weights, {precision}", partial(weigh, precision)) for precision in PRECISIONS]
    steps += [("losses at points", add_losses), ("boxes", choose_box), ("conjunctions", learn)]
    for loss, dtype in (
        (Logistic(), np.float64),
        (Logistic(), np.float32),
        (SquaredDistance(), np.float64),
        (AbsoluteDeviation(), np.float64),
    ):
        steps += [(f"gradients of {type(loss).__name__}, {np.dtype(dtype)}", partial(descend, loss, dtype))]
    steps += [("marginal tables", tabulate), ("packed records", pack_codes), ("fits and samples", fit)]
    arrays = {
        "int64": np.arange(3, dtype=np.int64),
        "int64, read-only": read_only(np.arange(3, dtype=np.int64)),
        "float64": np.arange(3.0),
        "float64, read-only": read_only(np.arange(3.0)),
    }
    for name, array in arrays.items():
        grid = 1.0 if array.dtype == np.float64 else None
        steps.append((f"laplace, {name}", partial(noise.release, array, grid, noise.laplace_plan(1.0))))
        steps.append((f"gaussian, {name}", partial(noise.release, array, grid, noise.gaussian_plan(1.0))))
        steps.append((f"selection, {name}", partial(choose, array)))
    pointers = exported.TABLE.items()
    steps += [(f"function pointer, {name}", partial(getattr, kernel, "address")) for name, kernel in pointers]
    return steps
