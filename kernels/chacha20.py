"""The words of words.py, under the name that they had while ChaCha20 was the only cipher. With a key of 8 words of 32
bits they are its words; nothing is defined here."""

from .chacha20_blocks import quarter_round
from .words import fill_groups_into, word_one, words_into

__all__ = ["fill_groups_into", "quarter_round", "word_one", "words_into"]
