"""`BayesianClassifier`: classes with probabilities."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from credence.estimators.base import BayesianEstimator, Uncertainty, num_targets
from models.prediction.options import IntervalKind


class BayesianClassifier(ClassifierMixin, BayesianEstimator):
    """Classification with a Bayesian neural network."""

    task: ClassVar[str] = "classification"

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        chosen = self.predict_proba(X).argmax(1)
        return self.classes_[chosen]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Rows × classes, in the order of `classes_`: probabilities, averaged over the draws."""
        return self._predict(X).mean

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Entropies in nats: expected, mutual information, and of the prediction."""
        entropy = self._predict(X).entropy
        assert entropy is not None
        return Uncertainty(**entropy)

    def predict_set(
        self, X: Any, level: float = 0.9, kind: IntervalKind = "credible"
    ) -> np.ndarray:
        """Rows × classes, in the order of `classes_`: True for the classes of each row's set.

        The smallest set of the most probable classes that contains the true one with probability
        `level`; it has at least one. A credible one follows from the predicted probabilities, a
        conformal one from rows that were held out for calibration.

        Raises:
            ValueError: conformal sets were requested of a model that was not calibrated.
        """
        if not 0 < level < 1:
            raise ValueError(f"level {level} is not between 0 and 1, such as 0.9")
        found = self._predict(X, set_level=level, interval_kinds=(kind,))
        sets = found["set" if kind == "credible" else "conformal_set"]
        return np.array([[name in row for name in found.classes or ()] for row in sets])

    def _has_several(self, y: Any) -> bool:
        if num_targets(y) > 1:
            raise ValueError(
                f"y has {num_targets(y)} columns, and classes are predicted of one target: use "
                "sklearn.multioutput.MultiOutputClassifier, which trains a model for each"
            )
        return False

    def _class_weights(self, target: np.ndarray) -> np.ndarray | None:
        if not isinstance(self.class_weight, Mapping):
            return None
        weights: np.ndarray = compute_sample_weight(dict(self.class_weight), target)
        return weights

    def _restore(self) -> None:
        self.classes_ = np.array(self.model_.classes)

    def _checked_target(self, target: np.ndarray) -> np.ndarray:
        check_classification_targets(target)
        self.classes_ = np.unique(target)  # in the order of the model's classes
        if len(self.classes_) < 2:
            raise ValueError(f"all rows are of one class, {self.classes_[0]!r}: give two or more")
        return target
