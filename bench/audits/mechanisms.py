"""The audits of every mechanism, by topic: inputs where one record moves what counts as far as it may."""

from __future__ import annotations

from . import answers, learning, noise, optimizing, ranks, selection, statistics, thresholds
from .registry import Audit

AUDITS: tuple[Audit, ...] = (
    *noise.AUDITS,
    *selection.AUDITS,
    *thresholds.AUDITS,
    *statistics.AUDITS,
    *ranks.AUDITS,
    *optimizing.AUDITS,
    *answers.AUDITS,
    *learning.AUDITS,
)
