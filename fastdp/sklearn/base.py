"""What all estimators share: checked input whose errors quote no record, randomness, pickling, display.

An estimator refuses before it charges: parameters first, then the types and shapes of X and y, then the records.
"""

from __future__ import annotations

import html
import re
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..connect.requirements import is_older
from ..privacy.budget import counting
from ..randomness.keys import Randomness
from ..support import parameters
from ..support.errors import DomainError
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
LEFT_BEHIND = "left behind in the process that pickled this"  # what a fitted estimator has for a budget: no Budget


class PrivateEstimator(BaseEstimator):
    """An estimator whose fit is a release: it has `guarantee_` afterwards, and charges `budget` or the open block."""

    random_state: Any
    budget: Any

    def _randomness(self) -> Randomness | None:
        return randomness(self.random_state)

    def _records(self, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """X, and y if there is one, as scikit-learn's `validate_data` makes them; its errors, without any values."""
        options = {"dtype": np.float64, **options}
        try:
            return validate_data(self, X, y, **options)
        except ValueError as error:
            message = without_values(str(error))
            if message == str(error):
                raise
        raise ValueError(message)  # outside of the block, so that the other error is not its context

    # --- one budget is one budget

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if "guarantee_" in state:
            return {**state, "budget": state["budget"] and LEFT_BEHIND}
        if state["budget"] is None and counting(None):
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


def randomness(random_state: Any) -> Randomness | None:
    """None: secure keys; an int is a seed, for tests; or a Randomness."""
    if random_state is None or isinstance(random_state, Randomness):
        return random_state
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise ValueError(
            f"random_state: type {type(random_state).__name__}: must be None (secure), an int, for tests only, "
            "or a fastdp.Randomness"
        )
    return Randomness(seed=int(random_state))


def without_values(message: str) -> str:
    """A message of scikit-learn or numpy about input, without the entries that it quotes."""
    if "could not convert string" in message or "not compatible with arrays of bytes/strings" in message:
        return (
            "Input must hold numbers only; there are strings: OneHotEncoder(categories=[[...]], sparse_output=False) "
            "makes numbers of labels that you declare"
        )
    if message.startswith("Complex data not supported"):
        return "Complex data not supported"
    return re.sub(r"\s*array=.*?(?=\s*Reshape your data|\Z)", "", message, flags=re.DOTALL)


def within(X: Floats, lower: Floats, upper: Floats, outside: str) -> Floats:
    """Records within bounds; DomainError for others, unless they are to be clipped."""
    parameters.outside(outside)
    if outside == "raise" and not ((lower <= X) & (upper >= X)).all():
        raise DomainError("X: must be within bounds; there are records outside: outside='clip' brings them back")
    return np.clip(X, lower, upper)


def bounds_of(name: str, bounds: Any, d: int) -> tuple[Floats, Floats]:
    """(lower, upper) of d columns, from a pair of numbers or of sequences; ValueError if there are none."""
    if bounds is None:
        missing(name)
    rule = f"must be (lower, upper), each a number or {d} of them, finite, lower < upper"
    if isinstance(bounds, list | tuple) and len(bounds) == d and all(np.shape(pair) == (2,) for pair in bounds):
        rule += "; tuple(zip(*pairs)) makes that of a pair for each column"
    try:
        low, high = bounds
        lower, upper = (np.broadcast_to(np.asarray(end, np.float64), d).copy() for end in (low, high))
    except (TypeError, ValueError):
        raise ValueError(f"{name}={shown(bounds)}: {rule}") from None
    if not (np.abs([lower, upper]) <= 2.0**400).all() or not (lower < upper).all():
        raise ValueError(f"{name}={shown(bounds)}: {rule}")
    return lower, upper


def missing(name: str, what: str = "(lower, upper)") -> NoReturn:
    """A public parameter that is never read off the data was not given."""
    raise ValueError(f"{name}=None: must be {what}, from public knowledge: it is never read off the data")
