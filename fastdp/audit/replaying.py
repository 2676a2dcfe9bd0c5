"""Record a run on one input, and replay it on a neighbour with every release frozen: audit.md, "Replay"."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from ..privacy.composition import compose
from ..privacy.guarantees import Guarantee, Neighbors
from ..privacy.origin import SEEDED, with_origin
from ..randomness.rehearsal import heard_by
from ..support import parameters
from ..support.checks import integer
from ..support.errors import PrivacyWarning, levels_to_caller
from ..support.shown import first_line, shown
from .differences import Difference, difference
from .replay_report import Finding, Replay
from .transcript import Drew, Read, Recorder, Replayer

D = TypeVar("D")


def replay(
    run: Callable[[D], Any], data: D, neighbor: D, *, seed: int = 0, neighbors: Neighbors = "replace-one"
) -> Replay:
    """Run a pipeline on two neighbouring inputs with the same releases, and report what else has changed.

    The run on `data` is recorded. On `neighbor` every release returns what it returned on `data`, so whatever differs
    between the runs has read the records outside of the releases.

    Parameters
    ----------
    run : callable
        The pipeline, as a function of its records: it opens its budgets itself, makes its releases by fastdp, and
        returns what it would publish.
    data : object
        Records for `run`: made up, or public. What a replay shows of them is not private.
    neighbor : object
        The same but for one record.
    seed : int >= 0
        Of all keys, those of rngs of the pipeline's own included.
    neighbors : {"replace-one", "add-remove"}
        In what the two differ: one record is another, or one has one record more.

    Returns
    -------
    Replay
        `.passed`, `.findings`, `.verdict`, a table and a picture.

    Raises
    ------
    ValueError
        "run=3: must be a function of the records".
    RuntimeError
        Within another replay.

    Warns
    -----
    PrivacyWarning
        Always: what a replay releases comes from a seed.

    Notes
    -----
    Guarantee    none: its releases are seeded, and say so
    Proof        audit.md, lemmas 1 and 2: why a finding is one
    Cost         two runs, and what both have read is kept until it ends
    Not covered  other inputs and other outputs than these; random numbers and noise that are not fastdp's; what runs in
                 other threads and processes; releases from records that no process here holds

    Examples
    --------
    >>> import warnings
    >>> import fastdp, numpy as np
    >>> warnings.simplefilter("ignore", fastdp.PrivacyWarning)  # it is not private, and says so
    >>> ages = np.array([23, 35, 62, 47, 51])
    >>> other = np.array([23, 35, 62, 47, 99])
    >>> def pipeline(ages):
    ...     old = int((ages > 60).sum())
    ...     return fastdp.laplace(old, sensitivity=1, epsilon=1.0) / len(ages)
    >>> fastdp.audit.replay(pipeline, ages, other).passed
    True
    >>> def careless(ages):
    ...     return fastdp.laplace(float(ages.sum()), sensitivity=10.0, epsilon=1.0)
    >>> print(fastdp.audit.replay(careless, ages, other).findings[0])
    statistic in release 1, laplace: what it reads moved by 48 in L1; sensitivity=10
    """
    if not callable(run):
        raise ValueError(f"run={shown(run)}: must be a function of the records")
    seed = integer("seed", seed, least=0)
    parameters.neighbors(neighbors)
    warnings.warn(
        "a replay releases from a seed, and shows what differs between the inputs: for records that are made up",
        PrivacyWarning,
        stacklevel=levels_to_caller(),
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Randomness\(seed", category=PrivacyWarning)
        recorder = Recorder(seed)
        replayer = Replayer(recorder, seed, neighbors)
    with heard_by(recorder):
        result = run(data)
    found = _again(run, neighbor, replayer)
    if isinstance(found, BaseException):
        replayer.findings.append(
            Finding("exception", None, "", f"on the neighbour {type(found).__name__}: {first_line(found)}")
        )
    else:
        replayer.ends()
        if not replayer.lost:
            _compare_results(result, found[0], replayer)
    not_followed = [*replayer.not_compared, *_unstated(recorder)]
    total = _together([began.guarantee for began in recorder.releases])
    return Replay(
        tuple(replayer.findings), tuple(replayer.reads_heard), len(recorder.releases), total, tuple(not_followed)
    )


def _again(run: Callable[[D], Any], neighbor: D, replayer: Replayer) -> tuple[Any] | Exception:
    """The result, or the error that it ended with, which is a finding."""
    with heard_by(replayer):
        try:
            return (run(neighbor),)
        except Exception as error:
            return error


def _compare_results(then: Any, now: Any, replayer: Replayer) -> None:
    found = difference(then, now)
    if isinstance(found, Difference):
        text = f"{found.text}, though every release returned the same"
        replayer.findings.append(Finding(found.kind, None, "", text))
    elif found:
        replayer.not_compared.append(found)


def _unstated(recorder: Recorder) -> list[str]:
    """The releases that draw and do not say from what."""
    reading = {step.release for step in recorder.steps if isinstance(step, Read)}
    drawing = {step.release for step in recorder.steps if isinstance(step, Drew) and step.release is not None}
    return [
        f"what release {number}, {recorder.releases[number - 1].mechanism}, reads: what it returns may have changed"
        for number in sorted(drawing - reading)
    ]


def _together(guarantees: list[Guarantee]) -> Guarantee | None:
    """Of all releases; None where there is no sum."""
    if not guarantees or len({each.neighbors for each in guarantees}) > 1:
        return None
    return with_origin(guarantees[0] if len(guarantees) == 1 else compose(*guarantees), SEEDED)
