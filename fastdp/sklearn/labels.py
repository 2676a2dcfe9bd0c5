"""The classes of a classifier: declared, because which labels occur in y is itself something about the records."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from ..records.outside_domain import is_missing
from ..support.checks import plain_array
from ..support.errors import DomainError, PrivacyWarning, levels_to_caller
from ..support.shown import shown
from .base import MISSING_LABELS, PrivateEstimator

OBSERVED = "observed"
_NO_LABELS = "None and NaN are no labels: make missing ones a label of their own, such as 'missing', beforehand"
_RULE = "must be two different labels, such as (0, 1) or ('no', 'yes'), the second the positive one; or 'observed'"
_SEVERAL = "must be two different labels or more, such as (0, 1) or ('low', 'middle', 'high'); or 'observed'"
_MOST = 2**16


class DeclaredClassifier(ClassifierMixin, PrivateEstimator):
    """A classifier of two classes, or, where it takes `several`, of any number.

    classes   (negative, positive), or several, which are public; "observed" takes those that occur, and the guarantee
              then holds among records in which all of them do
    """

    several: ClassVar[bool] = False
    classes: Any
    classes_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.several
        return tags

    def _labelled(self, X: Any, y: Any, **options: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Checked records, and which are of the positive class; sets `classes_`."""
        X, codes = self._coded(X, y, **options)
        return X, codes == 1

    def _coded(self, X: Any, y: Any, **options: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Checked records, and where in the classes their labels are; sets `classes_`."""
        declared = declared_classes(self.classes, self.several)
        X, y = self._records(X, y, **options)
        if y.dtype.kind == "O" and any(map(is_missing, y.tolist())):
            raise DomainError(f"y: {MISSING_LABELS}")
        if declared is None:
            declared = observed_classes(y, self.several)
            warnings.warn(
                "classes='observed': which labels occur in y is read off y, and is not private",
                PrivacyWarning,
                stacklevel=levels_to_caller(),
            )
        codes = np.full(len(y), -1, np.intp)
        for code, label in enumerate(declared):
            codes[np.asarray(equal(y, label))] = code
        if (codes < 0).any():
            raise DomainError(
                f"y: Unknown label type: must be one of classes={tuple(declared.tolist())}; there are other labels"
            )
        self.classes_ = declared
        return X, codes

    def _named(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Predictions as labels."""
        named: NDArray[Any] = self.classes_[codes.astype(np.intp)]
        return named


def declared_classes(classes: Any, several: bool = False) -> NDArray[Any] | None:
    """Labels as an array, two of them unless there may be `several`; None if they are to be observed."""
    rule = _SEVERAL if several else _RULE
    if isinstance(classes, str):
        if classes != OBSERVED:
            raise ValueError(f"classes={shown(classes)}: {rule}")
        return None
    missing, listed = False, []
    try:
        listed = list(classes)
        missing = any(map(is_missing, listed))
        right = 2 <= len(listed) <= (_MOST if several else 2)
        alike = right and len({isinstance(label, str) for label in listed}) == 1 and _differ(listed)
    except Exception:  # of a class that is not ours, too
        alike = False
    if missing:
        raise ValueError(f"classes={shown(classes)}: {_NO_LABELS}")
    if not alike:
        raise ValueError(f"classes={shown(classes)}: {rule}")
    return plain_array("classes", listed, rule)


def _differ(labels: list[Any]) -> bool:
    """Whether no two of them are equal."""
    if len(labels) == 2:
        return bool(labels[0] != labels[1])
    return len(set(labels)) == len(labels)


def observed_classes(y: NDArray[Any], several: bool = False) -> NDArray[Any]:
    """The labels that occur, in order; ValueError unless they are two, or more where there may be several."""
    check_classification_targets(y)
    found = np.unique(y)
    if len(found) > 2 and not several:
        kind = type_of_target(y, input_name="y")
        raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
    if len(found) < 2:
        raise ValueError("y: holds one class: must hold two, or declare classes=")
    return np.asarray(found)


def equal(y: NDArray[Any], label: Any) -> Any:
    """Which entries are this label; of other types than its own, none is."""
    return (y if y.dtype.kind in "biuf" and not isinstance(label, str) else y.astype(object)) == label
