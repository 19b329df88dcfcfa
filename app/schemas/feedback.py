"""Labels that come back, as HTTP says it. Rows and labels never pass through these classes."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, SkipValidation

from app.schemas.common import Json, ModelName, Reference, Request, Response
from models.prediction.options import Horizon, PredictOptions, Prune

PredictionId = Annotated[str, Field(pattern="^[!-~]{1,64}$", examples=["pred_7c1e"])]


class FeedbackParameters(Request):
    """Whose labels they are: a stored prediction's, or a model's whose rows come with them."""

    prediction: PredictionId | None = Field(None, description="the `id` of a stored prediction")
    model: ModelName | None = None
    version: Reference | None = Field(None, description="number or alias; default: the newest")
    prune: Prune = 0.0
    horizon: Horizon = None

    @property
    def options(self) -> PredictOptions:
        """As in a prediction that says nothing else."""
        return PredictOptions(prune=self.prune, horizon=self.horizon, intervals=())


class FeedbackRequest(FeedbackParameters):
    """The whole body, for the documentation."""

    inputs: SkipValidation[list[Json] | list[list[Any]] | dict[str, list[Any]] | None] = Field(
        None, description="in place of a prediction: rows as in POST /predict"
    )
    future: SkipValidation[dict[str, list[Any]] | None] = Field(
        None, description="forecasting only: columns of the covariates, a value for each step ahead"
    )
    truth: SkipValidation[list[str | float | bool | None]] = Field(
        description="the target of each row (of a forecast: each step), null where it is not known"
    )


class RollingResponse(Response):
    """What the newest labelled rows of a version say; `metrics` are as those of a version.

    Beside them `calibration_error`, and the version's own on its held-out rows
    (`expected_log_likelihood`).
    """

    model: str
    version: int
    window: int = Field(description="labelled rows that count at most, CREDENCE_FEEDBACK_ROWS")
    updated_at: datetime | None = Field(description="when labels came last")
    metrics: Json


class FeedbackResponse(Response):
    """What became of labels."""

    id: str
    prediction: str | None
    model: str
    version: int
    rows: int = Field(description="those whose truth is known")
    metrics: Json = Field(description="of these rows alone")
    rolling: RollingResponse
