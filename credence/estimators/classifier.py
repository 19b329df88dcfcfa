"""`BayesianClassifier`: classes with probabilities."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from credence.estimators.base import BayesianEstimator, Uncertainty


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

    def _restore(self) -> None:
        self.classes_ = np.array(self.model_.classes)

    def _checked_target(self, target: np.ndarray) -> np.ndarray:
        check_classification_targets(target)
        self.classes_ = np.unique(target)  # in the order of the model's classes
        if len(self.classes_) < 2:
            raise ValueError(f"all rows are of one class, {self.classes_[0]!r}: give two or more")
        return target
