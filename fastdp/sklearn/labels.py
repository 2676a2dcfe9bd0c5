"""The two classes of a classifier: declared, because which labels occur in y is itself something about the records."""

from __future__ import annotations

import warnings
from typing import Any

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


class BinaryClassifier(ClassifierMixin, PrivateEstimator):
    """A classifier of two classes.

    classes   (negative, positive), which are public; "observed" takes those that occur, and the guarantee then holds
              among records in which both do
    """

    classes: Any
    classes_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _labelled(self, X: Any, y: Any, **options: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Checked records, and which are of the positive class; sets `classes_`."""
        declared = declared_classes(self.classes)
        X, y = self._records(X, y, **options)
        if y.dtype.kind == "O" and any(map(is_missing, y.tolist())):
            raise DomainError(f"y: {MISSING_LABELS}")
        if declared is None:
            declared = observed_classes(y)
            warnings.warn(
                "classes='observed': which labels occur in y is read off y, and is not private",
                PrivacyWarning,
                stacklevel=levels_to_caller(),
            )
        positive, negative = (np.asarray(equal(y, label)) for label in declared[::-1])
        if not (positive | negative).all():
            raise DomainError(
                f"y: Unknown label type: must be one of classes={tuple(declared.tolist())}; there are other labels"
            )
        self.classes_ = declared
        return X, positive

    def _named(self, positive: NDArray[np.bool_]) -> NDArray[Any]:
        """Predictions as labels."""
        named: NDArray[Any] = self.classes_[positive.astype(np.intp)]
        return named


def declared_classes(classes: Any) -> NDArray[Any] | None:
    """Two labels as an array; None if they are to be observed."""
    if isinstance(classes, str):
        if classes != OBSERVED:
            raise ValueError(f"classes={shown(classes)}: {_RULE}")
        return None
    missing = False
    try:
        negative, positive = classes
        missing = is_missing(negative) or is_missing(positive)
        alike = isinstance(negative, str) == isinstance(positive, str) and bool(negative != positive)
    except Exception:  # of a class that is not ours, too
        alike = False
    if missing:
        raise ValueError(f"classes={shown(classes)}: {_NO_LABELS}")
    if not alike:
        raise ValueError(f"classes={shown(classes)}: {_RULE}")
    return plain_array("classes", [negative, positive], _RULE)


def observed_classes(y: NDArray[Any]) -> NDArray[Any]:
    """The labels that occur, in order; ValueError unless they are two."""
    check_classification_targets(y)
    found = np.unique(y)
    if len(found) > 2:
        kind = type_of_target(y, input_name="y")
        raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
    if len(found) < 2:
        raise ValueError("y: holds one class: must hold two, or declare classes=")
    return np.asarray(found)


def equal(y: NDArray[Any], label: Any) -> Any:
    """Which entries are this label; of other types than its own, none is."""
    return (y if y.dtype.kind in "biuf" and not isinstance(label, str) else y.astype(object)) == label
