"""`BayesianRegressor`: numbers with deviations and intervals."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, cast, overload

import numpy as np
from sklearn.base import RegressorMixin

from credence.estimators.base import BayesianEstimator, Uncertainty
from models.prediction.answers.density import PredictedDensity
from models.prediction.answers.exceeds import Exceedance
from models.prediction.answers.quantiles import Quantiles
from models.prediction.options import MAX_POINTS, Density, IntervalKind


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

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.1, 0.5, 0.9)) -> np.ndarray:
        """The values that a new target is at most with these probabilities: rows × quantiles.

        Raises:
            ValueError: a probability is not between 0 and 1, or there is none.
        """
        levels = tuple(float(level) for level in quantiles)
        if wrong := [level for level in levels if not 0 < level < 1]:
            raise ValueError(f"quantile {wrong[0]} is not between 0 and 1, such as 0.9")
        if not levels:
            raise ValueError("give at least one quantile, such as 0.9")
        found = self._predict(X, intervals=(), quantiles=levels).answers["quantiles"]
        return cast(Quantiles, found).values

    def predict_exceeds(self, X: Any, thresholds: Sequence[float]) -> np.ndarray:
        """The probabilities that a new target is above the thresholds: rows × thresholds.

        Raises:
            ValueError: a threshold is not finite, or there is none.
        """
        values = tuple(float(threshold) for threshold in thresholds)
        if wrong := [value for value in values if not np.isfinite(value)]:
            raise ValueError(f"threshold {wrong[0]} is not a finite number")
        if not values:
            raise ValueError("give at least one threshold")
        found = self._predict(X, intervals=(), exceeds=values).answers["exceeds"]
        return cast(Exceedance, found).probabilities

    def predict_density(self, X: Any, points: int = 64) -> PredictedDensity:
        """The predictive density of each row at increasing values that suit it.

        Raises:
            ValueError: there are fewer than 2 points or more than 512.
        """
        if not 2 <= points <= MAX_POINTS:
            raise ValueError(f"{points} points: give 2 to {MAX_POINTS}")
        found = self._predict(X, intervals=(), density=Density(points)).answers["density"]
        return cast(PredictedDensity, found)

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Variances: of the noise, of the predicted mean, and their sum."""
        return Uncertainty(**self._predict(X, intervals=()).variance)
