"""Counting records on bit-packed columns: bit i % 64 of word i // 64 is record i."""

from typing import Any

import numpy as np

from .arrays import copy_into
from .compile import jit
from .lanes import (
    I64Array,
    U8Array,
    U64Array,
    any_bits,
    int64,
    load_bytes,
    popcount,
    row_at,
    shl,
    splat,
    stack,
    store,
    uint64,
    zip_first,
    zip_last,
)

BLOCK = 512  # words that stay in the L1 cache while all columns are read
SETS = 1024  # words of two sets of records that stay there
GROUP = 8  # words of a column that are written together: a cache line
TILE = 64  # records, and columns, that are turned at a time
WIDE = 256  # words of all columns that stay in the cache while subsets of columns are read


@jit(inline=True)
def _or_rows(rows: Any, at: int, d: int, seen: Any) -> Any:
    """Bit k of byte j is rows[at + k d + j], for 8 rows and 64 columns; and what was seen of bytes before and here."""
    r0, r1 = load_bytes(rows, at, 8), load_bytes(rows, at + d, 8)
    r2, r3 = load_bytes(rows, at + 2 * d, 8), load_bytes(rows, at + 3 * d, 8)
    r4, r5 = load_bytes(rows, at + 4 * d, 8), load_bytes(rows, at + 5 * d, 8)
    r6, r7 = load_bytes(rows, at + 6 * d, 8), load_bytes(rows, at + 7 * d, 8)
    low = r0 | shl(r1, 1) | shl(r2, 2) | shl(r3, 3)
    high = shl(r4, 4) | shl(r5, 5) | shl(r6, 6) | shl(r7, 7)
    return low | high, seen | r0 | r1 | r2 | r3 | r4 | r5 | r6 | r7


@jit(inline=True)
def _turn_tile(rows: Any, at: int, d: int, words: Any, to: int, seen: Any) -> Any:
    """words[to + j], j < 64, is column j of 64 rows: bytes of eight rows each, then interleaved in three rounds."""
    a, seen = _or_rows(rows, at, d, seen)
    b, seen = _or_rows(rows, at + 8 * d, d, seen)
    c, seen = _or_rows(rows, at + 16 * d, d, seen)
    e, seen = _or_rows(rows, at + 24 * d, d, seen)
    f, seen = _or_rows(rows, at + 32 * d, d, seen)
    g, seen = _or_rows(rows, at + 40 * d, d, seen)
    h, seen = _or_rows(rows, at + 48 * d, d, seen)
    i, seen = _or_rows(rows, at + 56 * d, d, seen)
    a, b, c, e, f, g, h, i = _zip_all(a, b, c, e, f, g, h, i)
    a, b, c, e, f, g, h, i = _zip_all(a, b, c, e, f, g, h, i)
    a, b, c, e, f, g, h, i = _zip_all(a, b, c, e, f, g, h, i)
    store(words, to, a)
    store(words, to + 8, b)
    store(words, to + 16, c)
    store(words, to + 24, e)
    store(words, to + 32, f)
    store(words, to + 40, g)
    store(words, to + 48, h)
    store(words, to + 56, i)
    return seen


@jit(inline=True)
def _zip_all(a: Any, b: Any, c: Any, e: Any, f: Any, g: Any, h: Any, i: Any) -> Any:
    """One round: each of the first four with its partner among the last four."""
    return (
        zip_first(a, f), zip_last(a, f), zip_first(b, g), zip_last(b, g),
        zip_first(c, h), zip_last(c, h), zip_first(e, i), zip_last(e, i),
    )  # fmt: skip


@jit
def pack_rows_into(rows: U8Array, d: int, tail: U8Array, buffer: U64Array, out: Any) -> int:
    """Bit i % 64 of out[j, i // 64] is rows[i d + j], for bytes 0 and 1; spare bits are 0.

    Shapes    rows uint8[n d], tail uint8[64 d + 64] of zeros, buffer uint64[8 * 64 ceil(d / 64)],
              out uint64[d, ceil(n / 64)]
    Cost      memory speed from d = 64 on: 0.05 ns a bit; numba's own loop takes 0.3, whose bytes become words
    Requires  tail zero: it takes the last records, whose tile would end beyond the array
    Returns   all bytes or-ed together: above 1 if one of them is neither 0 nor 1, and then `out` means nothing
    Used by   fastdp/records/bit_words.py
    Oracle    numpy packbits
    """
    n = rows.size // d
    wide = (d + TILE - 1) // TILE * TILE
    seen = splat(uint64(0), 8)
    full = max(int64(0), (rows.size - TILE) // (TILE * d))  # tiles of 64 records that end within the array
    for start in range(0, out.shape[1], GROUP):
        m = min(GROUP, out.shape[1] - start)
        for k in range(m):
            word = start + k
            if word < full:
                for c in range(0, d, TILE):
                    seen = _turn_tile(rows, word * TILE * d + c, d, buffer, k * wide + c, seen)
            else:
                left = (n - word * TILE) * d
                size = min(left, TILE * d)
                for b in range(size):
                    tail[b] = rows[word * TILE * d + b]
                for b in range(size, tail.size):
                    tail[b] = 0
                for c in range(0, d, TILE):
                    seen = _turn_tile(tail, c, d, buffer, k * wide + c, seen)
        if m == GROUP:
            for j in range(d):
                for k in range(GROUP):
                    out[j, start + k] = buffer[k * wide + j]
        else:
            for j in range(d):
                for k in range(m):
                    out[j, start + k] = buffer[k * wide + j]
    last = any_bits(seen)
    last |= last >> uint64(32)
    last |= last >> uint64(16)
    last |= last >> uint64(8)
    return int64(last & uint64(255))


@jit
def count_among_into(columns: Any, first: U64Array, second: U64Array, out: Any) -> None:
    """out[0, j] += how many records of `first` have a 1 in column j; out[1, j] += how many of `second`.

    Shapes    columns uint64[d, W] with contiguous rows, first and second uint64[W], out int64[2, d]
    Cost      with AVX-512 0.1 ns a word, where columns come from the L3 cache; with AVX2 0.3. A column at a time, and
              the sets from beyond the L1 cache, took 1.5 times as long
    Used by   fastdp/learning/examples.py
    Oracle    numpy
    """
    d, words = columns.shape
    for start in range(0, words, SETS):
        n = min(SETS, words - start)
        these, those = first[start : start + n], second[start : start + n]
        for j in range(0, d, 2):
            k = min(j + 1, d - 1)  # the last one has no partner
            one, other = row_at(columns, j)[start : start + n], row_at(columns, k)[start : start + n]
            a, b, c, e = int64(0), int64(0), int64(0), int64(0)
            for w in range(n):
                a += popcount(one[w] & these[w])
                b += popcount(one[w] & those[w])
                c += popcount(other[w] & these[w])
                e += popcount(other[w] & those[w])
            out[0, j] += a
            out[1, j] += b
            if k > j:
                out[0, k] += c
                out[1, k] += e


@jit
def satisfying_into(columns: Any, chosen: I64Array, values: I64Array, out: U64Array) -> int:
    """Keep those records of `out` that have values[i] in column chosen[i], for all i; how many they are.

    Shapes    columns uint64[d, W] with contiguous rows, chosen int64[k], values int64[k] of 0 and 1, out uint64[W],
              read and written
    Cost      about 0.05 ns a word and chosen column
    Used by   fastdp/learning/examples.py
    Oracle    numpy
    """
    for i in range(chosen.size):
        column = row_at(columns, chosen[i])
        flip = uint64(0) if values[i] else ~uint64(0)
        for w in range(out.size):
            out[w] &= column[w] ^ flip
    total = int64(0)
    for w in range(out.size):
        total += popcount(out[w])
    return total


@jit
def count_falsified_into(columns: Any, n: int, labels: U64Array, chosen: I64Array, values: I64Array, out: Any) -> None:
    """Of the records that have values[i] in column chosen[i] for all i: how many falsify each literal, by their labels.

    out[0, 2 j] = #{left, labelled 0, with a 0 in column j},   out[0, 2 j + 1] = those with a 1,
    out[0, 2 d] = #{left, labelled 0};   out[1] the same of those labelled 1

    Shapes    columns uint64[d, W] with contiguous rows, of n records; labels uint64[W], chosen int64[k], values
              int64[k] of 0 and 1, out int64[2, 2 d + 1]
    Cost      that of satisfying_into and count_among_into
    Used by   fastdp/learning/examples.py
    Oracle    numpy
    """
    d, words = columns.shape
    left, positive = np.empty(words, np.uint64), np.empty(words, np.uint64)
    for w in range(words):
        rest = n - 64 * w
        left[w] = ~uint64(0) if rest >= 64 else (uint64(1) << uint64(rest)) - uint64(1)
    everyone = satisfying_into(columns, chosen, values, left)
    labelled = int64(0)
    for w in range(words):
        positive[w] = left[w] & labels[w]
        left[w] ^= positive[w]
        labelled += popcount(positive[w])
    ones = np.zeros((2, d), np.int64)
    count_among_into(columns, left, positive, ones)
    for row in range(2):
        of_row = labelled if row else everyone - labelled
        for j in range(d):
            out[row, 2 * j], out[row, 2 * j + 1] = of_row - ones[row, j], ones[row, j]
        out[row, 2 * d] = of_row


@jit(inline=True)
def _count_errors(prefix: Any, column: Any, wrong: Any, n: int) -> int:
    """Of the records that a prefix and a column leave, those where they differ from the labels."""
    total = int64(0)
    for w in range(n):
        total += popcount((prefix[w] & column[w]) ^ wrong[w])
    return total


@jit
def count_subsets_into(columns: Any, labels: U64Array, k: int, starts: I64Array, prefixes: Any, out: I64Array) -> None:
    """For every set of at most k columns: how many records are 1 in all of them and not in `labels`, or the reverse.

    Sets of s columns stand from starts[s] on, in colexicographic order: {c1 < ... < cs} at place
    C(c1, 1) + C(c2, 2) + ... + C(cs, s). The empty set is left out. Counts are added to `out`.

    Shapes    columns uint64[d, W] with contiguous rows, labels uint64[W], starts int64[k + 1], prefixes uint64[k, 256],
              out int64[sum of C(d, s) for s = 1 .. k, at starts[1] .. ]
    Cost      0.06 ns a set and word with AVX-512: a set costs one AND, one XOR and one count, whatever its size
    Requires  1 <= k <= d
    Used by   fastdp/learning/conjunctions_exhaustive.py
    Oracle    numpy
    """
    d, words = columns.shape
    element, limit, at = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.int64)
    for first in range(0, words, WIDE):
        n = min(WIDE, words - first)
        wrong = labels[first : first + n]
        for s in range(k):
            at[s] = starts[s + 1]
        top = 0
        element[0], limit[0] = -1, d
        while top >= 0:
            element[top] += 1
            c = element[top]
            if c == limit[top]:
                top -= 1
                continue
            column = row_at(columns, c)[first : first + n]
            if top + 1 < k and c > 0:  # it has larger sets below it
                prefix = prefixes[top]
                if top:
                    above = prefixes[top - 1]
                    for w in range(n):
                        prefix[w] = above[w] & column[w]
                else:
                    for w in range(n):
                        prefix[w] = column[w]
                out[at[top]] += _count_errors(prefix, prefix, wrong, n)
                at[top] += 1
                top += 1
                element[top], limit[top] = -1, c
            else:
                above = prefixes[top - 1] if top else column
                out[at[top]] += _count_errors(above, column, wrong, n)
                at[top] += 1


@jit
def pack_allowed_into(codes: Any, table: Any, out: U64Array) -> None:
    """Bit i of `out` is table[codes[i]]; spare bits are 0.

    Shapes    codes uint8[n], uint16[n] or uint32[n], table uint8[v] of 0 and 1, out uint64[ceil(n / 64)]
    Cost      about 0.6 ns a record
    Used by   fastdp/answering/true_answers.py
    Oracle    numpy packbits
    """
    for w in range(out.size):
        part = codes[64 * w : min(64 * (w + 1), codes.size)]
        word = uint64(0)
        for i in range(part.size):
            word |= uint64(table[part[i]]) << uint64(i)
        out[w] = word


@jit
def count_all(columns: Any, chosen: I64Array) -> int:
    """How many records have a 1 in every chosen column.

    Shapes    columns uint64[m, W], chosen int64[k], k >= 1
    Cost      about 0.1 ns a word and column
    Used by   fastdp/answering/true_answers.py
    Oracle    numpy
    """
    both = stack(np.uint64, BLOCK)
    total = int64(0)
    for start in range(0, columns.shape[1], BLOCK):
        n = min(BLOCK, columns.shape[1] - start)
        copy_into(columns[chosen[0]][start : start + n], both[:n])
        for j in range(1, chosen.size):
            other = columns[chosen[j]][start : start + n]
            for w in range(n):
                both[w] &= other[w]
        for w in range(n):
            total += popcount(both[w])
    return total


@jit
def sign_counts_into(
    counts: I64Array, starts: I64Array, chosen: Any, s: int, negatives: int, positives: int, first: int, out: I64Array
) -> None:
    """The errors of conjunctions of s literals, from those of conjunctions of ones.

    Errors are the positives and, for each record where a conjunction holds, 1 - 2 label: so beyond the positives, those
    with a 0 in a column are those without the column, less those with a 1 in it. Conjunction p 2^s + m asks for a 1 in
    the columns of set p whose bit in m is set, and for a 0 in the others.

    Shapes    counts and starts as in `count_subsets_into`, chosen int64[s] (scratch), out int64[2^s (last - first)]
    Cost      about s ns a conjunction
    Requires  s >= 1; sets first, first + 1, ... in colexicographic order exist
    Used by   fastdp/learning/conjunctions_exhaustive.py
    Oracle    numpy
    """
    patterns = 1 << s
    unrank_into(first, chosen, s)
    for p in range(out.size // patterns):
        at = p * patterns
        for m in range(patterns):
            place, size = int64(0), 0
            for i in range(s):
                if m >> i & 1:
                    size += 1
                    place += choose(chosen[i], size)
            out[at + m] = counts[starts[size] + place] if size else negatives
        for i in range(s):
            bit = 1 << i
            for m in range(patterns):
                if not m & bit:
                    out[at + m] += positives - out[at + m + bit]
        i = 0
        while i + 1 < s and chosen[i] + 1 == chosen[i + 1]:
            chosen[i] = i
            i += 1
        chosen[i] += 1


@jit
def choose(n: int, k: int) -> int:
    """How many sets of k there are among n; for results below 2^57.

    Shapes    numbers
    Cost      k divisions
    Used by   literals
    Oracle    math.comb
    """
    total = int64(1)
    if k > n:
        return 0
    for i in range(k):
        total = total * (n - i) // (i + 1)
    return total


@jit
def unrank_into(place: int, chosen: I64Array, s: int) -> None:
    """The set at a place of the colexicographic order: its columns, the least first.

    Shapes    chosen int64[k], k >= s, whose first s are written
    Cost      O(columns s)
    Requires  0 <= place < C(n, s) for some n of which chosen may hold numbers
    Used by   literals, fastdp/learning/conjunctions_exhaustive.py
    Oracle    itertools.combinations
    """
    for i in range(s, 0, -1):
        c = i - 1
        while choose(c + 1, i) <= place:
            c += 1
        chosen[i - 1] = c
        place -= choose(c, i)
