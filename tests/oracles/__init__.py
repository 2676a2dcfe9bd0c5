"""What fastdp computes, written down a second time by topic, slowly and so that it can be checked by reading.

The files import the standard library and numpy, and share no code with what they judge.
"""

from tests.oracles import aes, exact_draws, noise, numbers, optimizing, points, quantiles, selection, words

__all__ = ["aes", "exact_draws", "noise", "numbers", "optimizing", "points", "quantiles", "selection", "words"]
