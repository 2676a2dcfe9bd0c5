"""Kernels as C function pointers, for hosts that run no Python on a call: what `fastdp_kernels()` hands out.

They check nothing, charge nothing and keep nothing: a wrong length is a crash, and a key that is used twice for the
same draws undoes the noise. What a caller owes stands with each, and goes into the C header from here. None takes a
lock or Python's, so any number of threads may call them. Arrays are contiguous and aligned; n may be 0 where nothing
else is said. Parameters named in WRITTEN are written to, all others only read.
"""

from typing import Any

from numba import carray, types

from .clipping import LEAST_SQUARE, ClipRule, norms_into
from .compile import Callback, compile_callback
from .gradients import Place, Records, Work, add_margins
from .lanes import int64
from .layout import GAUSSIAN_LAW, LAPLACE_LAW
from .literals import count_among_into, pack_rows_into
from .noise import add_gaussian_into, add_gaussian_on_grid_into, add_laplace_into, add_laplace_on_grid_into
from .projections import project_one
from .weights import scale_masked, scale_valued, sum_cells, sum_valued, sum_where
from .words import words_into

WRITTEN = frozenset({"out", "undecided", "weights", "point", "tail", "space"})

_I64, _F64, _BYTES = types.CPointer(types.int64), types.CPointer(types.float64), types.CPointer(types.uint8)
_KEY, _WORDS = types.CPointer(types.uint32), types.CPointer(types.uint64)

LAPLACE_PLAN, LAPLACE_LAW_AT = 2 + LAPLACE_LAW, 1  # doubles: extra, then the law, then the grid
GAUSSIAN_PLAN, GAUSSIAN_LAW_AT = 3 + GAUSSIAN_LAW, 3  # doubles: extra, sigma, grid, then the law


@compile_callback(types.void(_KEY, types.uint64, types.int64, types.int64, _WORDS))
def words(key: Any, stream: Any, first: Any, n: Any, out: Any) -> None:
    """The random words number first, first + 1, ... of a stream: a function of key, stream and number alone.

    Requires  key[8] from the operating system, a fresh one for every release; first >= 0; every word used once
    """
    words_into(carray(key, (8,)), stream, first, carray(out, (n,)))


@compile_callback(types.int64(_I64, types.int64, _KEY, types.int64, _F64, _I64, _I64))
def laplace_i64(values: Any, n: Any, key: Any, block: Any, laplace_plan: Any, out: Any, undecided: Any) -> Any:
    """Add discrete Laplace noise: out[i] = values[i] + Z_i, held inside int64. out may be values.

    The draws are those of the blocks `block`, `block` + 1, ... of 1,024 entries each: entry i of the release has the
    number 1024 block + i. A release may be divided among threads at multiples of 1,024 and has the same bits.

    Requires  key[8] from the operating system, a fresh one for every release; a plan from fastdp_plan_laplace_i64;
              each block once under a key; room for n numbers in `undecided`
    Returns   how many entries are undecided (hardly ever one), listed in `undecided`: THERE OUT HAS NO NOISE YET, and
              fastdp_settle_laplace_i64 must be called for them before anything is published
    """
    p = carray(laplace_plan, (LAPLACE_PLAN,))
    return add_laplace_into(
        carray(values, (n,)), carray(key, (8,)), block, int64(p[0]), p[LAPLACE_LAW_AT:-1], carray(out, (n,)),
        carray(undecided, (n,)),
    )  # fmt: skip


@compile_callback(types.int64(_F64, types.int64, _KEY, types.int64, _F64, _F64, _I64))
def laplace_f64(values: Any, n: Any, key: Any, block: Any, laplace_plan: Any, out: Any, undecided: Any) -> Any:
    """Round every entry to the plan's grid and add discrete Laplace noise on it. out may be values.

    Requires  what laplace_i64 does, with a plan from fastdp_plan_laplace_f64 for all entries of the release; values
              finite, which must be checked before any noise is drawn
    Returns   as laplace_i64; fastdp_settle_laplace_f64 resolves them
    """
    p = carray(laplace_plan, (LAPLACE_PLAN,))
    return add_laplace_on_grid_into(
        carray(values, (n,)), p[6], carray(key, (8,)), block, int64(p[0]), p[LAPLACE_LAW_AT:-1], carray(out, (n,)),
        carray(undecided, (n,)),
    )  # fmt: skip


@compile_callback(types.int64(_I64, types.int64, _KEY, types.int64, _F64, _I64, _I64))
def gaussian_i64(values: Any, n: Any, key: Any, block: Any, gaussian_plan: Any, out: Any, undecided: Any) -> Any:
    """Add discrete Gaussian noise: out[i] = values[i] + Z_i, held inside int64. out may be values.

    The draws are those of the blocks `block`, `block` + 1, ... of 2,208 entries each, as in laplace_i64.

    Requires  what laplace_i64 does, with a plan from fastdp_plan_gaussian_i64
    Returns   how many blocks are undecided; the first entry of each is listed in `undecided`: THERE OUT HAS NO NOISE
              YET, and fastdp_settle_gaussian_i64 must be called before anything is published
    """
    p = carray(gaussian_plan, (GAUSSIAN_PLAN,))
    return add_gaussian_into(
        carray(values, (n,)), carray(key, (8,)), block, int64(p[0]), p[GAUSSIAN_LAW_AT:], carray(out, (n,)),
        carray(undecided, (n,)),
    )  # fmt: skip


@compile_callback(types.int64(_F64, types.int64, _KEY, types.int64, _F64, _F64, _I64))
def gaussian_f64(values: Any, n: Any, key: Any, block: Any, gaussian_plan: Any, out: Any, undecided: Any) -> Any:
    """Round every entry to the plan's grid and add discrete Gaussian noise on it. out may be values.

    Requires  what gaussian_i64 does, with a plan from fastdp_plan_gaussian_f64 for all entries of the release; values
              finite, which must be checked before any noise is drawn
    Returns   as gaussian_i64; fastdp_settle_gaussian_f64 resolves them
    """
    p = carray(gaussian_plan, (GAUSSIAN_PLAN,))
    return add_gaussian_on_grid_into(
        carray(values, (n,)), p[2], carray(key, (8,)), block, int64(p[0]), p[GAUSSIAN_LAW_AT:], carray(out, (n,)),
        carray(undecided, (n,)),
    )  # fmt: skip


@compile_callback(types.float64(_F64, types.int64))
def sum_weights(x: Any, cells: Any) -> Any:
    """The sum of all weights."""
    return sum_cells(carray(x, (cells,)))


@compile_callback(types.float64(_F64, types.int64, _BYTES))
def evaluate_mask(x: Any, cells: Any, mask: Any) -> Any:
    """The sum of the weights where mask is not 0."""
    return sum_where(carray(x, (cells,)), carray(mask, (cells,)))


@compile_callback(types.float64(_F64, types.int64, _BYTES, types.float64))
def update_mask(weights: Any, cells: Any, mask: Any, factor: Any) -> Any:
    """Multiply the weights by `factor` where mask is not 0; returns the sum of all weights after that."""
    return scale_masked(carray(weights, (cells,)), carray(mask, (cells,)), factor)


@compile_callback(types.float64(_F64, types.int64, _F64))
def evaluate_values(x: Any, cells: Any, values: Any) -> Any:
    """The sum of weight times value."""
    return sum_valued(carray(x, (cells,)), carray(values, (cells,)))


@compile_callback(types.float64(_F64, types.int64, _F64, types.float64))
def update_values(weights: Any, cells: Any, values: Any, rate: Any) -> Any:
    """Multiply every weight by e^(rate value); returns the sum of all weights after that.

    Requires  |rate value| <= 700
    """
    return scale_valued(carray(weights, (cells,)), carray(values, (cells,)), rate)


@compile_callback(types.int64(_F64, types.int64, types.int64, _F64))
def norms(points: Any, n: Any, d: Any, out: Any) -> Any:
    """The norms of n points of d coordinates, as sum_gradients wants them; returns 1 if one is not finite, else 0."""
    return norms_into(carray(points, (n * d,)), d, LEAST_SQUARE, carray(out, (n,)))


_SUM_GRADIENTS = (
    _F64, _F64, _F64, types.int64, types.int64, _F64, types.int64, types.float64, types.intp, types.float64,
    types.float64, _F64, _F64, _I64,
)  # fmt: skip


# 14 arguments, because C programs that are compiled call it so: fastdp.h says in which order. A struct would break them
# all and gain nothing: 14 stores instead of the 5 that do not fit in registers, 5.3 ns a call against 4.2 (gcc -O2).
@compile_callback(types.void(*_SUM_GRADIENTS))
def sum_gradients(
    points: Any, labels: Any, lengths: Any, n: Any, d: Any, w: Any, loss: Any, parameter: Any, derivative: Any,
    unit: Any, limit: Any, tail: Any, space: Any, out: Any,
) -> None:  # fmt: skip
    """Add the clipped gradients of a margin loss, in units of a grid, as integers: out[j] += sum of trunc(c_i x_ij).

    c_i is the loss's derivative at <x_i, w> and y_i times `unit`, made smaller where |c_i| lengths[i] exceeds `limit`.

    Requires  points of finite entries; lengths from `norms`; w[D], D the next multiple of 8 from d, zeros after the
              first d entries; loss one of FASTDP_SQUARED, LOGISTIC, HINGE, HUBER (parameter: its threshold), CUSTOM
              (derivative: a function of score and label); unit one over the grid, a power of two; limit at most 2^41
              and (1 - (d + 64) 2^-53) of the norm that a record may have; n limit < 2^62 over all calls that add to
              `out`; tail[32 d + 8] and space[2 D]: work space of this call
    """
    D = (d + 7) // 8 * 8
    both = carray(space, (2 * D,))
    ones = both[:D]
    for j in range(D):
        ones[j] = 1.0 if j < d else 0.0
    some = Records(carray(points, (n * d,)), carray(labels, (n,)), carray(lengths, (n,)))
    rule = ClipRule(loss, parameter, derivative, float("inf"), unit, limit)
    work = Work(carray(tail, (32 * d + 8,)), both[D:])
    add_margins(some, Place(carray(w, (D,)), ones), rule, work, carray(out, (d,)))


@compile_callback(types.void(types.int64, _F64, _F64, types.float64, _F64, types.int64, _F64))
def project(set_: Any, a: Any, b: Any, radius: Any, point: Any, d: Any, space: Any) -> None:
    """Move a point to the nearest one of a set.

    Requires  set_ one of FASTDP_BALL (L2, center a), FASTDP_BALL_L1 (L1, center a), FASTDP_BOX (from a to b),
              FASTDP_SIMPLEX (coordinates add up to `radius`); a[d] and b[d] there in any case; space[d]: work space of
              this call; all numbers finite; d >= 1
    """
    project_one(
        set_, carray(a, (d,)), carray(b, (d,)), radius, carray(point, (d,)), carray(space, (d,))
    )  # fmt: skip


@compile_callback(types.int64(_BYTES, types.int64, types.int64, _BYTES, _WORDS, _WORDS))
def pack_rows(rows: Any, n: Any, d: Any, tail: Any, space: Any, out: Any) -> Any:
    """Bit i % 64 of out[j W + i / 64] is rows[i d + j], W = (n + 63) / 64: records of bytes 0 and 1 to columns of bits.

    Requires  tail[64 d + 64] of zeros, space[512 ((d + 63) / 64)]: work space of this call; out[d W]
    Returns   all bytes or-ed together: above 1 if one of them is neither 0 nor 1, and then `out` means nothing
    """
    wide = (d + 63) // 64 * 64
    columns = carray(out, (d, (n + 63) // 64))
    return pack_rows_into(carray(rows, (n * d,)), d, carray(tail, (64 * d + 64,)), carray(space, (8 * wide,)), columns)


@compile_callback(types.void(_WORDS, types.int64, types.int64, _WORDS, _WORDS, _I64))
def count_among(columns: Any, d: Any, words: Any, first: Any, second: Any, out: Any) -> None:
    """Add to out[j] how many records of `first` have a 1 in column j, and to out[d + j] how many of `second`.

    Requires  columns[d words] as `pack_rows` makes them; first[words], second[words]: a bit for each record
    """
    count_among_into(
        carray(columns, (d, words)), carray(first, (words,)), carray(second, (words,)), carray(out, (2, d))
    )


TABLE: dict[str, Callback] = {
    callback.function.__name__: callback
    for callback in (
        words, laplace_i64, laplace_f64, gaussian_i64, gaussian_f64, sum_weights, evaluate_mask, update_mask,
        evaluate_values, update_values, norms, sum_gradients, project, pack_rows, count_among,
    )
}  # fmt: skip
