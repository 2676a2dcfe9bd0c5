"""Every mechanism is seen to lose what it is asked to show, and no more than it claims; its mutants are refuted.

With fresh keys, where tests have fixed ones, each row would be a false alarm with probability 1e-4 at most, and short
of its power with a few percent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fastdp.audit import lower_bound
from fastdp.bench.audits import mechanisms, transcripts
from fastdp.bench.audits.answers import NEAR, QUERIES, online
from fastdp.bench.audits.learning import X
from fastdp.bench.audits.registry import Accuracy, Audit
from fastdp.bench.harness.audits import CONFIDENCE
from tests.audit.pipelines import ELSEWHERE, names_that_are_charged

AUDITS = {audit.name: audit for audit in mechanisms.AUDITS}

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")  # records are few, on purpose


def bound(audit: Audit, many: Any) -> Any:
    return lower_bound(
        many, audit.data, audit.neighbor, runs=audit.runs, many=True, claimed=audit.claimed, confidence=CONFIDENCE
    )


@pytest.mark.parametrize("name", AUDITS)
def test_it_loses_what_it_claims_and_no_more(name: str) -> None:
    audit = AUDITS[name]
    found = bound(audit, audit.many)
    assert not found.refuted, found
    assert getattr(found, audit.parameter) >= audit.sees, found


@pytest.mark.parametrize(("name", "mutant"), [(name, each) for name, audit in AUDITS.items() for each in audit.mutants])
def test_mutants_are_refuted(name: str, mutant: str) -> None:
    audit = AUDITS[name]
    assert bound(audit, audit.mutants[mutant]).refuted


@pytest.mark.parametrize("name", [name for name, audit in AUDITS.items() if audit.accuracy])
def test_errors_are_within_their_bounds(name: str) -> None:
    """Bounds of half the size are refuted where they are the law's own."""
    audit = AUDITS[name]
    assert audit.accuracy is not None
    errors = audit.errors(400)
    assert errors is not None
    assert errors.shape == (400,)
    assert not audit.accuracy.exceeded(errors, CONFIDENCE)
    if name in ("laplace", "gaussian", "count", "sum", "mean"):
        half = replace(audit.accuracy, bound=audit.accuracy.bound / 2)
        assert half.exceeded(errors, CONFIDENCE)


def test_a_mean_beyond_its_bound_is_noticed() -> None:
    uniform = np.random.default_rng(1).uniform(size=400)
    assert not Accuracy(0.5, lambda out: out, beta=None).exceeded(uniform, CONFIDENCE)
    assert Accuracy(0.2, lambda out: out, beta=None).exceeded(uniform, CONFIDENCE)


def test_every_mechanism_has_an_audit() -> None:
    audited = {name.partition(",")[0] for name in AUDITS}
    assert names_that_are_charged() - audited - ELSEWHERE == set()


# --- many transcripts at once have the law of one object after another


def same_law(one: list[Any], many: Any) -> None:
    """A chi-square test of two samples; 2,000 against 50,000. A false alarm has probability below 1e-6."""
    from scipy.stats import chi2_contingency

    first, second = np.atleast_2d(np.array(one).T).T, np.atleast_2d(many.T).T
    values, which = np.unique(np.concatenate((first, second)), axis=0, return_inverse=True)
    which = which.reshape(-1)
    counts = np.array([np.bincount(part, minlength=len(values)) for part in (which[: len(one)], which[len(one) :])])
    rare = counts[1] < 250
    counts = np.column_stack((counts[:, ~rare], counts[:, rare].sum(axis=1)))
    counts = counts[:, counts.sum(axis=0) > 0]
    assert counts.shape[1] > 1
    assert chi2_contingency(counts).pvalue > 1e-6


def test_thresholds() -> None:
    values = [9, 11, 10, 12]
    one = [transcripts.above_threshold_once(10, values, 1.0) for _ in range(2000)]
    same_law(one, transcripts.above_threshold(10, values, 1.0, 50_000))
    with pytest.raises(AssertionError):
        same_law(one, transcripts.above_threshold(10, values, 1.0, 50_000, query_scale=0.5))


def test_conjunctions() -> None:
    audit = AUDITS["learn_conjunction"]
    assert audit.once is not None
    errors = transcripts.conjunction_errors(X, audit.data, 2)
    assert len(errors) == 2 + 4 + 4
    drawn = [audit.once(audit.data) for _ in range(600)]
    wrong = [int(np.count_nonzero(rule.predict(X) != audit.data)) for rule in drawn]
    same_law(wrong, errors[audit.many(audit.data, 50_000)])


def test_multiplicative_weights() -> None:
    one = [transcripts.sharp_once(online(NEAR), QUERIES) for _ in range(250)]
    many = transcripts.SharpTranscripts(online(NEAR), QUERIES).draw(50_000)
    same_law([np.round(each, 9) for each in one], np.round(many, 9))
