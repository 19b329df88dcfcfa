"""Where a question about a series differs: one history comes in, and rows are the steps ahead."""

from app.serving.question import Question
from core.exceptions import Invalid
from models.forecasting.model import Forecaster
from models.forecasting.rollout import History
from models.prediction.prediction import PredictOptions
from models.trained import TrainedModel


def rows_of(question: Question, options: PredictOptions) -> int:
    """Rows that will be predicted; `options` are settled."""
    return question.num_rows if options.horizon is None else options.horizon


def refuse_future(model: TrainedModel, question: Question) -> None:
    """Raise `Invalid` if steps ahead are told to a model that has none."""
    if question.decode_future is not None:
        raise Invalid([("/future", f"this {model.task} predicts rows, which have no future")])


def read_history(model: Forecaster, question: Question, options: PredictOptions) -> History:
    """What the model predicts from: the end of a series.

    Raises:
        Invalid, InvalidInput: naming what is missing, wrong or not for this model.
    """
    refuse_series(model, allowed=question.may_be_series)
    columns = question.decode(model.inputs)
    decode = question.decode_future
    if decode is not None and not model.future_inputs:
        raise Invalid(
            [("/future", "this model has no covariates, and needs nothing of the future")]
        )
    future = None if decode is None else decode(model.future_inputs)
    return model.read(columns, future, int(options.horizon or 1))


def refuse_series(model: TrainedModel, *, allowed: bool = False) -> None:
    """Raise `Invalid` where rows are predicted one by one, which a series has not."""
    if isinstance(model, Forecaster) and not allowed:
        message = "a forecast goes on from a history: ask POST /predict for it"
        raise Invalid([("/model", message)])
