"""Cases of the noise room: random words, Laplace and Gaussian noise, and what a process pays before its first number.

Where it is open what numpy should be asked for, it is asked for less: for arrays its noise alone is timed, without the
addition to the values; ours adds.
"""

from ..registry import Case
from . import counts, from_c, gaussian, laplace, mean, new_process, persons, words

CASES: tuple[Case, ...] = (
    *words.CASES,
    *laplace.CASES,
    *gaussian.CASES,
    *mean.CASES,
    *counts.CASES,
    *persons.CASES,
    *new_process.CASES,
    *from_c.CASES,
)
