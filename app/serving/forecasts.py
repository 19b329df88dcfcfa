"""Where a question about a series differs: one history comes in, and rows are the steps ahead."""

from torch import Tensor

from app.serving.question import Question
from core.exceptions import Invalid
from models.forecasting.model import Forecaster
from models.forecasting.rollout import History
from models.model import BayesianModel
from models.prediction.prediction import PredictOptions


def rows_of(model: BayesianModel, question: Question, options: PredictOptions) -> int:
    """Rows that will be predicted; `options` are settled."""
    return question.num_rows if options.horizon is None else options.horizon


def encode(model: BayesianModel, question: Question, options: PredictOptions) -> Tensor | History:
    """What the model predicts from: rows as network inputs, or the end of a series.

    Raises:
        Invalid, InvalidInput: naming what is missing, wrong or not for this model.
    """
    if not isinstance(model, Forecaster):
        if question.decode_future is not None:
            raise Invalid([("/future", f"this {model.task} predicts rows, which have no future")])
        return model.encode(question.decode(model.inputs))
    refuse_series(model, allowed=question.may_be_series)
    columns = question.decode(model.inputs)
    decode = question.decode_future
    if decode is not None and not model.future_inputs:
        raise Invalid(
            [("/future", "this model has no covariates, and needs nothing of the future")]
        )
    future = None if decode is None else decode(model.future_inputs)
    return model.read(columns, future, int(options.horizon or 1))


def refuse_series(model: BayesianModel, *, allowed: bool = False) -> None:
    """Raise `Invalid` where rows are predicted one by one, which a series has not."""
    if isinstance(model, Forecaster) and not allowed:
        message = "a forecast goes on from a history: ask POST /predict for it"
        raise Invalid([("/model", message)])
