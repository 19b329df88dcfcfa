"""`BayesianRegressor`: numbers with deviations and intervals."""

from typing import Any, ClassVar, Literal, overload

import numpy as np
from sklearn.base import RegressorMixin

from credence.estimators.base import BayesianEstimator, Uncertainty
from models.prediction.options import IntervalKind


class BayesianRegressor(RegressorMixin, BayesianEstimator):
    """Regression with a Bayesian neural network.

    `predict(X, return_std=True)` works as in scikit-learn's Gaussian processes and BayesianRidge.
    """

    task: ClassVar[str] = "regression"

    @overload
    def predict(self, X: Any) -> np.ndarray: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...
    def predict(
        self, X: Any, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Means; with `return_std` also standard deviations, noise included."""
        found = self._predict(X, intervals=())
        return (found.mean, np.sqrt(found.variance["total"])) if return_std else found.mean

    def predict_interval(
        self, X: Any, level: float = 0.9, kind: IntervalKind = "credible"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds that contain a new target with probability `level`.

        Raises:
            ValueError: conformal bounds were requested of a model that was not calibrated, or
                adaptive ones, which follow labels that only a service has.
        """
        if kind == "adaptive":
            raise ValueError("adaptive bounds follow labels that a service received: deploy first")
        if not 0 < level < 1:
            raise ValueError(f"level {level} is not between 0 and 1, such as 0.9")
        (interval,) = self._predict(X, intervals=(level,), interval_kinds=(kind,)).intervals
        return interval.lower, interval.upper

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Variances: of the noise, of the predicted mean, and their sum."""
        return Uncertainty(**self._predict(X, intervals=()).variance)
