"""What both estimators answer beyond predictions: why, what to do, which rows are unusual."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError
from sklearn.utils.validation import check_is_fitted

from models.evaluation.acquisition import choose
from models.exceptions import InvalidInput
from models.expected_scores.expectation import Expectation, expect
from models.features.columns import Columns
from models.joint.model import JointModel
from models.prediction.options import DEFAULT_SAMPLES, Costs, PredictOptions
from models.prediction.outputs.contributions import PARTS
from models.prediction.outputs.reasons import Reason
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from models.tabular.unlabelled import informed, simulate


class Unlike(NamedTuple):
    """Per row: whether it is unlike the training rows, its score, and why; no reasons if it is not.

    The score is −log₁₀ of the probability that a training row is at least as unusual.
    """

    flags: np.ndarray
    score: np.ndarray
    reasons: list[Sequence[Reason]]


class Contributions(NamedTuple):
    """Shapley values with their standard errors: rows × features (× classes, of their mean).

    `base` and the sum over the features are the prediction's own mean, variance or entropy.
    """

    features: tuple[str, ...]
    base: Mapping[str, Any]
    mean: np.ndarray
    aleatoric: np.ndarray
    epistemic: np.ndarray
    mean_error: np.ndarray
    aleatoric_error: np.ndarray
    epistemic_error: np.ndarray


class Decisions(NamedTuple):
    """What to do in each row, in the unit of the costs.

    Attributes:
        action: a number in the target's unit, or the name of an action.
        actions: the names of all actions; None of numbers.
        value_of_information: how much the expected cost falls if the truth is known first.
        value_of_model_information: how much it falls if the weights are, which is the limit of
            more training data.
        ask: whether asking a person costs less; None without that cost.
    """

    action: np.ndarray | list[str | float | bool]
    actions: tuple[str | float | bool, ...] | None
    expected_cost: np.ndarray
    value_of_information: np.ndarray
    value_of_model_information: np.ndarray
    ask: np.ndarray | None


class AnswersMixin:
    """Methods of fitted estimators that rest on one prediction."""

    model_: TabularModel | JointModel
    samples: int | None
    prune: float

    def _predict(self, X: Any, **options: Any) -> RowPrediction:
        raise NotImplementedError

    def _columns(self, X: Any) -> Columns:
        raise NotImplementedError

    def _single_model(self) -> TabularModel:
        """The model, of a method whose answer is of one target.

        Raises:
            ValueError: the model has several.
        """
        check_is_fitted(self, "model_")
        if len(self.model_.targets) > 1:
            names = ", ".join(self.model_.targets)
            raise ValueError(
                f"the answer is of one target, and this model has several ({names}): "
                "ask one of estimators_"
            )
        return cast(TabularModel, self.model_)

    def explain(self, X: Any) -> Contributions:
        """What each feature contributes to mean and both variances: Shapley values.

        Rows × features with their standard errors; of a classifier the mean is rows × features ×
        classes. `base` and the contributions add up to the prediction.

        Raises:
            ValueError: the model cannot explain its predictions, or has several targets.
        """
        self._single_model()
        try:
            found = self._predict(X, intervals=(), explain=True)
        except InvalidInput as error:
            raise ValueError(str(error)) from error
        values = [found[f"{part}_contribution{end}"] for end in ("", "_error") for part in PARTS]
        return Contributions(found.constants["features"], found.constants["base"], *values)

    def detect_unlike(self, X: Any) -> Unlike:
        """Which rows are unlike the training rows, and why.

        Of rows like those of training 1 % are flagged.
        """
        found = self._predict(X, intervals=())
        return Unlike(found.out_of_distribution, found["ood_score"], found["reasons"])

    def choose_rows(self, X: Any, k: int) -> np.ndarray:
        """The numbers of the k rows whose labels together teach most, the best first.

        Source: BatchBALD (Kirsch et al. 2019, arXiv 1906.08158), with a Gaussian of the draws.

        Raises:
            ValueError: the predictions do not depend on uncertain weights (`mle`, `map`).
        """
        model = self._single_model()
        options = PredictOptions(samples=self.samples, prune=self.prune, intervals=())
        z = informed(model, model.encode(self._columns(X)), options)
        if not torch.count_nonzero(z):
            raise ValueError("the model has no uncertain weights: use a method with a posterior")
        return np.array(choose(z, k).rows)

    def expected_scores(self, X: Any, level: float = 0.9) -> dict[str, Expectation]:
        """The scores to expect on rows whose truth is not known, with intervals.

        `promised` is that of the held-out rows; it `leaves` where the whole interval is worse.

        Args:
            level: probability of the intervals.
        """
        model = self._single_model()
        samples = self.samples or DEFAULT_SAMPLES
        options = PredictOptions(samples=samples, prune=self.prune, intervals=())
        found = simulate(model, model.encode(self._columns(X)), options)
        return expect(found, model.variant(self.prune).promise, level)

    def decide(self, X: Any, costs: Mapping[str, Any]) -> Decisions:
        """The action with the least expected cost of each row, and what knowing more would save.

        Args:
            costs: as in `POST /predict`: of classes a `matrix` with a row per action and a column
                per class; of numbers `over` and `under`, per unit above and below the truth; of
                both perhaps `abstain`, of asking a person.

        Raises:
            ValueError: the costs do not fit the model; the message says what would.
        """
        try:
            given = TypeAdapter(Costs).validate_python(dict(costs))
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))} {e['msg']}" for e in error.errors())
            raise ValueError(f"costs: {wrong}") from None
        self._single_model()
        found = self._predict(X, costs=given)
        return Decisions(*map(found.get, Decisions._fields))
