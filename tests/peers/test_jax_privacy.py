"""The auditor of jax-privacy on the mechanisms of fastdp: it sees what they claim, no more, and catches the mutants.

Its one file needs numpy, scipy and dp-accounting; the package around it needs jax, so the file is loaded by itself.
Outputs are drawn in chunks as fastdp.audit draws them; what is made of them here is all the auditor's own.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastdp.bench.audits import mechanisms
from fastdp.bench.audits.registry import Audit

found = importlib.util.find_spec("jax_privacy")
if found is None:
    pytest.skip("make test-peers brings jax-privacy", allow_module_level=True)

SIGNIFICANCE = 1e-4  # of a false alarm, for each row
AUDITS = {audit.name: audit for audit in mechanisms.AUDITS}
# It takes one score of an output; of these its threshold shows at least so much of the claimed epsilon.
SEES = {"laplace": 0.93, "exponential_mechanism": 0.35, "AboveThreshold": 0.5, "count": 0.65, "mean": 0.4}


def auditing() -> Any:
    assert found is not None
    (place,) = found.submodule_search_locations or [""]
    spec = importlib.util.spec_from_file_location("jax_privacy_auditing", Path(place) / "auditing.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


AUDITING = auditing()


def seen(audit: Audit, many: Any) -> float:
    """The lower bound of epsilon that the auditor gives, both ways."""
    likely = audit.score(many(audit.data, audit.runs))
    rare = audit.score(many(audit.neighbor, audit.runs))
    delta = getattr(audit.claimed, "delta", 0.0) if audit.parameter == "epsilon" else 0.01
    strategy = AUDITING.Split(seed=0)
    bounds = [
        AUDITING.CanaryScoreAuditor(a, b).epsilon_clopper_pearson(
            SIGNIFICANCE / 2, delta, one_sided=False, threshold_strategy=strategy
        )
        for a, b in ((likely, rare), (-rare, -likely))
    ]
    return float(max(bounds))


def claimed(audit: Audit) -> float:
    if audit.parameter == "epsilon":
        return audit.claims
    return audit.claimed.to_approx(0.01).epsilon


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")
@pytest.mark.parametrize("name", AUDITS)
def test_no_more_than_is_claimed(name: str) -> None:
    audit = AUDITS[name]
    bound = seen(audit, audit.many)
    assert SEES.get(name, 0.0) <= bound <= claimed(audit)


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")
@pytest.mark.parametrize(("name", "mutant"), [(name, each) for name, audit in AUDITS.items() for each in audit.mutants])
def test_mutants_are_caught(name: str, mutant: str) -> None:
    audit = AUDITS[name]
    assert seen(audit, audit.mutants[mutant]) > claimed(audit)


def test_laplace_noise_to_half_a_percent() -> None:
    """2e7 outputs in one call."""
    audit = AUDITS["laplace"]
    scores = [audit.score(audit.many(data, 10_000_000)) for data in (audit.data, audit.neighbor)]
    bound = AUDITING.CanaryScoreAuditor(*scores).epsilon_clopper_pearson(
        SIGNIFICANCE, threshold_strategy=AUDITING.Split(seed=0)
    )
    assert 0.99 < bound <= 1.0
    assert np.isfinite(bound)
