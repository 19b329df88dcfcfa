"""`BayesianRegressor`: numbers with deviations and intervals."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, cast, overload

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from credence.estimators.base import BayesianEstimator, Uncertainty, num_targets
from models.joint.answer import JointPrediction, joint_name
from models.joint.model import JointModel
from models.prediction.declared_outputs import ATOM
from models.prediction.options import MAX_POINTS, Density, IntervalKind
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel

KINDS = ("aleatoric", "epistemic", "total")  # of variance, in the order of `Uncertainty`


class DensityGrid(NamedTuple):
    """The predictive density at increasing values of each row, in 1 ÷ units of the target.

    Attributes:
        kind: of each row: `probability` if only whole numbers occur, else `density`.
        values, density: rows × points.
        atoms: rows × atoms: values that the density does not count, with their probabilities.
    """

    kind: list[str]
    values: np.ndarray
    density: np.ndarray
    atoms: np.ndarray
    atom_probabilities: np.ndarray


class BayesianRegressor(RegressorMixin, BayesianEstimator):
    """Regression with a Bayesian neural network.

    `predict(X, return_std=True)` works as in scikit-learn's Gaussian processes and BayesianRidge.

    A `y` of several columns gives a network for each, and the dependence between them, as several
    targets of `POST /train`. Answers then have a last axis of targets.
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
        each = self._of_targets(X, intervals=())
        mean = _together([one.mean for one in each])
        if not return_std:
            return mean
        return mean, np.sqrt(_together([one.variance["total"] for one in each]))

    def predict_interval(
        self, X: Any, level: float = 0.9, kind: IntervalKind = "credible"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds that contain a new target with probability `level`.

        Of several targets each is inside with this probability: see `predict_joint_interval`.

        Raises:
            ValueError: conformal bounds were requested of a model that was not calibrated, or
                adaptive ones, which follow labels that only a service has.
        """
        if kind == "adaptive":
            raise ValueError("adaptive bounds follow labels that a service received: deploy first")
        check_level(level)
        each = self._of_targets(X, intervals=(level,), interval_kinds=(kind,))
        lower = _together([one.intervals[0].lower for one in each])
        return lower, _together([one.intervals[0].upper for one in each])

    def predict_joint_interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds, rows × targets, that contain all targets together.

        They do so with probability `level`; with too few calibration rows they are infinite.

        Raises:
            ValueError: the model has one target.
        """
        check_level(level)
        found = self._predict(X, intervals=(level,))
        if not isinstance(found, JointPrediction):
            raise ValueError("the model has one target: use predict_interval")  # noqa: TRY004
        lower, upper = (
            np.concatenate([found[joint_name(target, end)] for target in found.targets], axis=1)
            for end in ("lower", "upper")
        )
        return lower, upper

    @property
    def estimators_(self) -> list["BayesianRegressor"]:
        """An estimator for each target, as in scikit-learn's MultiOutputRegressor.

        It predicts as this one does, and answers what is of one target: `explain`, `decide`, ….
        """
        check_is_fitted(self, "model_")
        members = self.model_.members if isinstance(self.model_, JointModel) else (self.model_,)
        return [self._with_model(member) for member in members]

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.1, 0.5, 0.9)) -> np.ndarray:
        """The values that a new target is at most with these probabilities: rows × quantiles.

        Of several targets rows × quantiles × targets.

        Raises:
            ValueError: a probability is not between 0 and 1, or there is none.
        """
        levels = tuple(float(level) for level in quantiles)
        if wrong := [level for level in levels if not 0 < level < 1]:
            raise ValueError(f"quantile {wrong[0]} is not between 0 and 1, such as 0.9")
        if not levels:
            raise ValueError("give at least one quantile, such as 0.9")
        each = self._of_targets(X, intervals=(), quantiles=levels)
        return _together([one["quantile"] for one in each])

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
        self._single_model()
        found: np.ndarray = self._predict(X, intervals=(), exceeds=values)["exceeds"]
        return found

    def predict_density(self, X: Any, points: int = 64) -> DensityGrid:
        """The predictive density of each row at increasing values that suit it.

        Raises:
            ValueError: there are fewer than 2 points or more than 512.
        """
        if not 2 <= points <= MAX_POINTS:
            raise ValueError(f"{points} points: give 2 to {MAX_POINTS}")
        self._single_model()
        found = self._predict(X, intervals=(), density=Density(points))
        names = ("density_kind", "density_values", "density", "density_atom")
        kind, values, density, probabilities = map(found.get, names)
        atoms = np.tile(found.coordinates[ATOM], (len(values), 1))
        return DensityGrid(kind, values, density, atoms, probabilities)

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Variances: of the noise, of the predicted mean, and their sum."""
        each = self._of_targets(X, intervals=())
        return Uncertainty(*(_together([one.variance[k] for one in each]) for k in KINDS))

    def _of_targets(self, X: Any, **options: Any) -> list[RowPrediction]:
        """The prediction of each target."""
        found = self._predict(X, **options)
        return [*found.targets.values()] if isinstance(found, JointPrediction) else [found]

    def _with_model(self, model: TabularModel) -> "BayesianRegressor":
        estimator = clone(self)
        estimator.model_, estimator.n_features_in_ = model, self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            estimator.feature_names_in_ = self.feature_names_in_
        return cast(BayesianRegressor, estimator)

    def _has_several(self, y: Any) -> bool:
        return num_targets(y) > 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def check_level(level: float) -> None:
    """Raise `ValueError` unless this is the probability of an interval."""
    if not 0 < level < 1:
        raise ValueError(f"level {level} is not between 0 and 1, such as 0.9")


def _together(each: Sequence[np.ndarray]) -> np.ndarray:
    """Of several targets along a last axis."""
    return each[0] if len(each) == 1 else np.stack(each, axis=-1)
