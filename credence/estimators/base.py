"""The base of both estimators: settings, columns, fitting, saving and deploying."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from core.exceptions import Invalid
from credence.client.frames import unique_names, with_plain_columns
from credence.estimators import fitting, saving, tables
from credence.estimators.answers import AnswersMixin
from credence.estimators.progress import training_progress
from models.features.columns import Columns
from models.features.row_weights import MIN_ROWS
from models.joint.model import JointModel
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel

if TYPE_CHECKING:
    from credence.client import Client, TrainedModel

_TRAINING = (
    "effort", "folds", "epochs", "batch_size", "learning_rate", "optimizer", "patience",
    "validation_fraction", "calibration_fraction", "class_weight", "groups",
)  # fmt: skip
_NETWORK = ("hidden", "activation")
_ARRAYS: dict[str, Any] = {
    "dtype": np.float64,
    "ensure_all_finite": "allow-nan",
    "accept_sparse": "csr",
}


class Uncertainty(NamedTuple):
    """Per row: variances in squared target units, or entropies in nats; total is their sum."""

    aleatoric: np.ndarray
    epistemic: np.ndarray
    total: np.ndarray


class BayesianEstimator(AnswersMixin, BaseEstimator):
    """Settings are named as in `POST /train`; None means the recommended value.

    All checks of scikit-learn pass but those below. A row of weight 2 counts as two rows in the
    objective, but two rows are shuffled and held out separately, so that the fits differ.

    `class_weight` (of classifiers) is None, "balanced", or a weight by class, which multiplies
    those of the rows.

    `groups` (of regressors) names a column of X, in each group of which conformal intervals are
    right.
    """

    task: ClassVar[str]
    expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_sample_weight_equivalence_on_dense_data": (
            "mini-batches and held-out rows are drawn by row, so that two rows are not drawn "
            "as one row of weight 2"
        ),
        "check_sample_weight_equivalence_on_sparse_data": "the same",
        "check_class_weight_classifiers": (
            "a class of weight 0.0001 beside one of 1000 is learned from hundreds of steps only"
        ),
    }

    def __init__(
        self,
        method: str | Mapping[str, Any] = "bbb",
        *,
        hidden: Sequence[int] | None = None,
        activation: str | None = None,
        members: int | None = None,
        likelihood: str | Mapping[str, Any] | None = None,
        effort: str | None = None,
        folds: int | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        optimizer: str | None = None,
        patience: int | None = None,
        validation_fraction: float | None = None,
        calibration_fraction: float | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        groups: str | None = None,
        support: Mapping[str, Any] | None = None,
        pruning: Sequence[float] | None = None,
        prune: float = 0.0,
        samples: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.hidden = hidden
        self.activation = activation
        self.members = members
        self.likelihood = likelihood
        self.effort = effort
        self.folds = folds
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.calibration_fraction = calibration_fraction
        self.class_weight = class_weight
        self.groups = groups
        self.support = support
        self.pruning = pruning
        self.prune = prune
        self.samples = samples
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train as the service would: some rows are held out for calibration and scores.

        Rows of weight 0 are ignored. Without `random_state` the seed is 0, as in the service.

        Raises:
            ValueError: data or a setting cannot be used; the message names it.
        """
        given_names = _names_of(y)
        columns, target = self._validated(X, y)
        weights = self._class_weights(target)
        if sample_weight is not None:
            given = _check_sample_weight(sample_weight, target, ensure_non_negative=True)
            weights = given if weights is None else weights * given
        if weights is not None:
            kept = weights > 0
            columns = {name: column.filter(pa.array(kept)) for name, column in columns.items()}
            target, weights = target[kept], weights[kept]
        target = self._checked_target(target)
        if len(target) < MIN_ROWS:
            raise ValueError(f"n_samples={len(target)} are too few: give at least {MIN_ROWS} rows")
        self._inputs = list(columns)
        several = target.reshape(len(target), -1).T
        *names, weight = _free_names(columns, (*given_names, "weight"))
        columns |= {
            name: pa.chunked_array([pa.array(values.tolist())])
            for name, values in zip(names, several, strict=True)
        }
        if weights is not None:
            columns[weight] = pa.chunked_array([pa.array(weights)])
        request = self._request(names, None if weights is None else weight)
        try:
            with training_progress(verbose=bool(self.verbose)) as show:
                self.model_ = fitting.fit(tables.read(columns), request, self.device, show)
        except Invalid as error:
            raise fitting.refused(error) from error
        return self

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Aleatoric (noise), epistemic (more data would reduce it), and total uncertainty."""
        raise NotImplementedError

    def save(self, path: Path | str) -> None:
        """Write the model as a version's archive: safetensors and JSON, no pickle.

        `credence models import` creates a version from it.
        """
        check_is_fitted(self, "model_")
        Path(path).write_bytes(saving.pack(self.model_))

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Return the fitted estimator of an archive, as `credence.estimators.load` does.

        Raises:
            ValueError: if the model has another task.
        """
        return cls.of(saving.unpack(Path(path).read_bytes(), (cls.task,)))

    @classmethod
    def of(cls, model: TabularModel | JointModel) -> Self:
        """Return an estimator with default settings that predicts with a model."""
        estimator, names = cls(), [feature.name for feature in model.features]
        estimator.model_ = model
        estimator.n_features_in_ = len(names)
        if names != [f"x{i}" for i in range(len(names))]:  # which are the names of an array
            estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator._restore()
        return estimator

    def _restore(self) -> None:
        """Set what a fit of this task learns besides the model."""

    def deploy(self, client: "Client", name: str, alias: str | None = None) -> "TrainedModel":
        """Send the model to a service; the new version, which predicts the same."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.tar"
            self.save(path)
            version = client.import_version(path, name, alias)
        return client.model(name, version["version"])

    def _validated(self, X: Any, y: Any) -> tuple[dict[str, Any], np.ndarray]:
        """Named columns, and one target per row, or a row of several."""
        options = {"y_numeric": self.task == "regression", "multi_output": self._has_several(y)}
        X = with_plain_columns(X)
        table = tables.to_arrow(X)
        if table is None:
            X, y = validate_data(self, X, y, **_ARRAYS, **options)
            return tables.name_columns(_dense(X), self._feature_names()), y
        validate_data(self, X, y, skip_check_array=True)
        y = validate_data(_Target(), y=y, **options)
        check_consistent_length(X, y)
        return tables.name_columns(table, self._feature_names()), y

    def _has_several(self, y: Any) -> bool:
        """Whether a target has several columns. Raises `ValueError` if the task takes but one."""
        return False

    def _feature_names(self) -> list[str]:
        """The names of a frame; for an array x0, x1, …"""
        if hasattr(self, "feature_names_in_"):
            return list(self.feature_names_in_)
        return [f"x{i}" for i in range(self.n_features_in_)]

    def _checked_target(self, target: np.ndarray) -> np.ndarray:
        """The target, after checks of the task."""
        return target

    def _class_weights(self, target: np.ndarray) -> np.ndarray | None:
        """The weight of each row by its class; None if there are none."""
        return None

    def _request(self, target: Sequence[str], weight: str | None) -> dict[str, Any]:
        """The body of `POST /train` for the same training, without model and data set."""
        training = self._given(_TRAINING) | {"seed": self._seed()}
        if not isinstance(self.class_weight, str):
            training.pop("class_weight", None)  # a mapping: the rows have these weights
        method = {"kind": self.method} if isinstance(self.method, str) else dict(self.method)
        return {
            "target": target,
            "weight": weight,
            "task": self.task,
            "network": self._given(_NETWORK),
            "method": method,
            "training": training,
            **self._given(("likelihood", "support", "members", "pruning")),
        }

    def _given(self, names: Sequence[str]) -> dict[str, Any]:
        values = ((name, getattr(self, name)) for name in names)
        return {name: value for name, value in values if value is not None}

    def _seed(self) -> int:
        if self.random_state is None or isinstance(self.random_state, int | np.integer):
            return int(self.random_state or 0)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _predict(self, X: Any, **options: Any) -> RowPrediction:
        check_is_fitted(self, "model_")
        wanted = PredictOptions(samples=self.samples, prune=self.prune, **options)
        return self.model_.predict(self._columns(X), wanted)

    def _columns(self, X: Any) -> Columns:
        X = with_plain_columns(X)
        table = tables.to_arrow(X)
        if table is None:
            table = _dense(validate_data(self, X, **_ARRAYS, reset=False))
        else:
            validate_data(self, X, skip_check_array=True, reset=False)
        try:
            named = tables.name_columns(table, self._feature_names())
            return tables.read_as(named, self.model_.inputs)
        except Invalid as error:
            raise fitting.refused(error) from error

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """A pickle holds the model as an artifact, which is checked when it is read."""
        state = dict(super().__getstate__())
        if "model_" in state:
            state["model_"] = saving.pack(state["model_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "model_" in state:
            self.model_ = saving.unpack(state["model_"], (self.task,))


class _Target(BaseEstimator):
    """Checks a target without its frame."""


def _dense(X: Any) -> Any:
    """An array, also of a sparse matrix: the networks read dense columns."""
    return X.toarray() if hasattr(X, "toarray") else X


def num_targets(y: Any) -> int:
    """The number of columns of an array or frame."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return int(shape[1]) if len(shape) == 2 else 1


def _names_of(y: Any) -> list[str]:
    """The names of targets that are columns of a frame, which a service then shows.

    Others are "target", or "target0", "target1", ….
    """
    count = num_targets(y)
    names = getattr(y, "column_names", getattr(y, "columns", None))  # Arrow's columns are values
    if names is not None and count > 1:
        return unique_names(names)
    if count > 1:
        return [f"target{i}" for i in range(count)]
    name = getattr(y, "name", None) if names is None else names[0]
    return [name if isinstance(name, str) and name else "target"]


def _free_names(taken: Mapping[str, Any], wanted: Sequence[str]) -> list[str]:
    """The wanted names; `_` is appended to a name that a column has."""
    names = []
    for name in wanted:
        while name in taken:
            name = f"{name}_"  # noqa: PLW2901 - grows until it is free
        names.append(name)
    return names
