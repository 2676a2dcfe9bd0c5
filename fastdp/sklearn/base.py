"""What all estimators share: checked input whose errors quote no record, randomness, pickling, display.

An estimator refuses before it charges: parameters first, then the types and shapes of X and y, then the records.
"""

from __future__ import annotations

import html
import re
import sys
import warnings
from types import FrameType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..connect.requirements import is_older
from ..privacy.blocks import counting
from ..randomness.keys import Randomness
from ..records.outside_domain import numbers_or_nan
from ..support import parameters
from ..support.checks import one_of, plain_integer
from ..support.columns import Entries, column_of, comes_from, objects
from ..support.errors import DomainError, PrivacyWarning, levels_to_caller
from ..support.parameters import OUTSIDE
from ..support.shown import shown

_NEEDED = "1.6"
_EXTRA = 'pip install "fastdp[sklearn]"'


def check_version() -> None:
    """ImportError if scikit-learn is missing, or too old."""
    try:
        import sklearn
    except ImportError:
        raise ImportError(f"fastdp.sklearn needs scikit-learn, which is not installed: {_EXTRA}") from None
    if is_older(sklearn.__version__, _NEEDED):
        raise ImportError(
            f"fastdp.sklearn needs scikit-learn >= {_NEEDED}, and {sklearn.__version__} is here: {_EXTRA}"
        )


check_version()

from sklearn.base import BaseEstimator  # noqa: E402
from sklearn.utils import estimator_html_repr  # noqa: E402
from sklearn.utils.validation import validate_data  # noqa: E402

Floats = NDArray[np.float64]
_OF_SHAPES = ("Expected ", "Found ", "X has ", "y should be ", "Complex data")  # scikit-learn's errors, not of entries
MISSING_LABELS = (
    "Input y contains NaN or None: missing labels and targets are always refused: make each a label or a number of "
    "the domain beforehand"
)
LEFT_BEHIND = "left behind in the process that pickled this"  # what an estimator has for a budget then: no Budget
_NO_LABELS = object()  # in place of y


class PrivateEstimator(BaseEstimator):
    """An estimator whose fit is a release: it has `guarantee_` afterwards, and charges `budget` or the open block."""

    random_state: Any
    budget: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if getattr(self, "outside", None) == "clip":  # whatever stands in a record
            tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def _randomness(self) -> Randomness | None:
        """Where the keys of a fit come from, once it is clear who pays for it."""
        if isinstance(self.budget, str) and self.budget == LEFT_BEHIND:
            raise ValueError(
                f"budget={self.budget!r}: must be a fastdp.Budget of this process, or None: this estimator belonged to "
                "a budget that cannot be charged here; set_params(budget=...) states who pays for a fit"
            )
        if self.budget is not None or counting(None):
            _warn_of_scores()
        return randomness(self.random_state)

    def _records(self, X: Any, y: Any = _NO_LABELS, **options: Any) -> Any:
        """X, and y if there is one, as scikit-learn's `validate_data` makes them; its errors, without any values.

        With outside="clip" NaN stands for what is missing or no number in X. Of y scikit-learn asks that it be refused.
        """
        if isinstance(y, str):  # one of which would tell scikit-learn to check none
            raise ValueError("X, y: y should be a 1d array, got a word instead")
        options = {"dtype": np.float64, **options}
        outside = getattr(self, "outside", None)
        if outside is not None and one_of("outside", outside, OUTSIDE) == "clip":
            options["ensure_all_finite"] = False
            if options["dtype"] is not None:
                X = numbers(X)
        try:
            return validate_data(self, X, "no_validation" if y is _NO_LABELS else y, **options)
        except (TypeError, ValueError) as error:
            kind: type[Exception] = TypeError if isinstance(error, TypeError) else ValueError
            message = without_values(str(error))
            if message == MISSING_LABELS or (kind is ValueError and not str(error).startswith(_OF_SHAPES)):
                kind = DomainError  # a NaN, a string: due to the records
        except Exception:  # of classes that are not ours
            kind, message = ValueError, "must be an array of numbers"
        names = "X" if y is _NO_LABELS else "X, y"
        raise kind(f"{names}: {message}")  # outside of the block, so that the other error is not its context

    # --- one budget is one budget

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        charged = state["budget"] is not None or counting(None)  # which a fit elsewhere would not be
        if "guarantee_" in state:
            return {**state, "budget": LEFT_BEHIND if charged else None}
        if state["budget"] is None and charged:
            _refuse_to_travel()
        return state  # which a Budget in it makes impossible

    # --- display

    def _repr_html_inner(self) -> str:
        guarantee = getattr(self, "guarantee_", None)
        sentence = "" if guarantee is None else f"<p>The fit is {html.escape(str(guarantee))}.</p>"
        return str(estimator_html_repr(self)) + sentence

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle


def _refuse_to_travel() -> NoReturn:
    raise TypeError(
        "an estimator that is yet to be fitted does not pickle while a Budget block is open: a fit in another process "
        "would not be charged to it; use n_jobs=1 or threads with budget=, or give each process its own share"
    )


def _warn_of_scores() -> None:
    """A PrivacyWarning if scikit-learn scores the fit that is asked for, and does not leave the choice to a function.

    A fit in a thread of its own belongs to the searches in other threads that were given the same X.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "_fit_and_score":
        frame = frame.f_back
    if frame is None or not frame.f_globals.get("__name__", "").startswith("sklearn.model_selection"):
        return
    X = frame.f_locals.get("X")
    while frame is not None:
        if callable(getattr(frame.f_locals.get("self"), "refit", None)):  # of a search
            return
        frame = frame.f_back
    refits = _refits_in_threads(X)
    if refits and all(map(callable, refits)):
        return
    warnings.warn(
        "the budget pays for the fits of a search or a cross-validation, and not for their scores, which are computed "
        "from the records: neither the scores nor what is chosen by them is private; refit= takes a function that "
        "chooses privately, and cv_results_ must not be published",
        PrivacyWarning,
        stacklevel=levels_to_caller(),
    )


def _refits_in_threads(X: Any) -> list[Any]:
    """What chooses in each search of these records that any thread is in; None in a cross-validation."""
    found = []
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            of_search = frame.f_globals.get("__name__", "").startswith("sklearn.model_selection")
            if of_search and frame.f_code.co_name in ("fit", "cross_validate") and frame.f_locals.get("X") is X:
                found.append(getattr(frame.f_locals.get("self"), "refit", None))
            frame = frame.f_back
    return found


def randomness(random_state: Any) -> Randomness | None:
    """None: secure keys; an int is a seed, for tests; or a Randomness."""
    if random_state is None or isinstance(random_state, Randomness):
        return random_state
    if plain_integer(random_state) is None:
        raise ValueError(
            f"random_state: type {type(random_state).__name__}: must be None (secure), an int, for tests only, "
            "or a fastdp.Randomness"
        )
    return Randomness(seed=random_state)


def without_values(message: str) -> str:
    """A message of scikit-learn or numpy about input, without the entries that it quotes.

    Of NaN scikit-learn advises to leave out such records, by which their number would depend on them.
    """
    if message.startswith("Input X contains NaN"):
        return "Input X contains NaN: outside='clip' takes missing values at the lower bound"
    if message.startswith(("Input y contains NaN", "Input contains NaN", "boolean value of NA")):
        return MISSING_LABELS
    if "could not convert string" in message or "not compatible with arrays of bytes/strings" in message:
        return (
            "Input must hold numbers only; there are strings: OneHotEncoder(categories=[[...]], sparse_output=False) "
            "makes numbers of labels that you declare"
        )
    if message.startswith("Complex data not supported"):
        return "Complex data not supported"
    return re.sub(r"\s*array=.*?(?=\s*Reshape your data|\Z)", "", message, flags=re.DOTALL)


def numbers(X: Any) -> Any:
    """Records of whatever objects as floats, in an array or in a frame with the same names."""
    if comes_from(X, "pandas", "DataFrame"):
        made = {j: numbers_or_nan(column_of("X", X.iloc[:, j]).entries(0, len(X))) for j in range(X.shape[1])}
        frame = type(X)(made, index=X.index)
        frame.columns = X.columns
        return frame
    if isinstance(X, list | tuple):
        X = np.asarray([objects(row) if isinstance(row, list | tuple) else row for row in X])
    if isinstance(X, np.ndarray) and X.dtype.kind == "O" and X.ndim == 2:
        return numbers_or_nan(Entries(X.reshape(-1), None, "X")).reshape(X.shape)
    return X


def within(X: Floats, lower: Floats, upper: Floats, outside: str) -> Floats:
    """Records within bounds; DomainError for others, unless they are to be clipped."""
    parameters.outside(outside)
    if outside == "raise" and not ((lower <= X) & (upper >= X)).all():
        raise DomainError("X: must be within bounds; there are records outside: outside='clip' brings them back")
    return np.clip(np.where(np.isnan(X), lower, X), lower, upper)


def bounds_of(name: str, bounds: Any, d: int) -> tuple[Floats, Floats]:
    """(lower, upper) of d columns, from a pair of numbers or of sequences; ValueError if there are none."""
    if bounds is None:
        missing(name)
    rule = f"must be (lower, upper), each a number or {d} of them, finite, lower < upper"
    if isinstance(bounds, list | tuple) and len(bounds) == d and all(np.shape(pair) == (2,) for pair in bounds):
        rule += "; tuple(zip(*pairs)) makes that of a pair for each column"
    try:
        low, high = bounds
        lower, upper = (_end(end, d) for end in (low, high))
    except (TypeError, ValueError):
        raise ValueError(f"{name}={shown(bounds)}: {rule}") from None
    if not (np.abs([lower, upper]) <= 2.0**400).all() or not (lower < upper).all():
        raise ValueError(f"{name}={shown(bounds)}: {rule}")
    return lower, upper


def _end(end: Any, d: int) -> Floats:
    """A number for each of d columns, or one for all."""
    numbers = np.asarray(end, np.float64)
    if numbers.shape not in ((), (d,)):
        raise ValueError(f"{numbers.shape}")
    return np.full(d, numbers)


def missing(name: str, what: str = "(lower, upper)") -> NoReturn:
    """A public parameter that is never read off the data was not given."""
    raise ValueError(f"{name}=None: must be {what}, from public knowledge: it is never read off the data")
