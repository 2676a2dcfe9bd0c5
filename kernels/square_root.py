"""Noise for running sums, correlated as by the square root of their matrix: a recursion of constant size a step.

The square root's coefficients, C(2k, k) / 4^k, are a mixture of powers of numbers 1 - 2^-e, to about a hundredth by
one e in two. A step then costs a shift and an addition for each, instead of a product with all that went before, and
nothing is kept of the past but one sum for each. Integers only: what is cut off is carried to the next step.
"""

from .compile import jit
from .lanes import I64Array, int64
from .layout import HISTORY_BITS


@jit
def correlate_into(
    noise: I64Array,
    exponents: I64Array,
    shifts: I64Array,
    weights: I64Array,
    buffers: I64Array,
    remainders: I64Array,
    out: I64Array,
) -> None:
    """Add to the noise of every step what its predecessors bring: out[t] = noise[t] + (a history of noise[:t]).

    The history is floor(2^-11 sum_i weights[i] floor(buffers[i] / 2^shifts[i])); then each buffer loses 2^-exponents[i]
    of itself, rounded so that the errors of all steps together stay below 1, and takes in the noise of the step.

    Shapes    noise int64[n, m] (read), exponents, shifts, weights int64[d], buffers and remainders int64[m, d] (read
              and written), out int64[n, m] (may be noise)
    Cost      O(n m d), some 20 ns a step of one coordinate and 12 buffers
    Source    fastdp/answering/running_sums.md, lemmas 1 and 2
    Requires  no sum leaves int64: fastdp/answering/running_sums.py looks before each block
    Used by   fastdp.ContinualCounter
    Oracle    Python's integers
    """
    for t in range(noise.shape[0]):
        for j in range(noise.shape[1]):
            fresh = noise[t, j]
            total = int64(0)
            for i in range(exponents.size):
                total += weights[i] * (buffers[j, i] >> shifts[i])
            for i in range(exponents.size):
                whole = buffers[j, i] + remainders[j, i]
                lost = whole >> exponents[i]
                remainders[j, i] = whole - (lost << exponents[i])
                buffers[j, i] += fresh - lost
            out[t, j] = fresh + (total >> int64(HISTORY_BITS))
