"""Feedback in requests and responses. Rows and labels are not parsed with these classes."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, SkipValidation

from app.schemas.common import Json, ModelName, Reference, Request, Response
from models.config import ColumnName
from models.prediction.options import Horizon, PredictOptions, Prune

PredictionId = Annotated[str, Field(pattern="^[!-~]{1,64}$", examples=["pred_7c1e"])]


class FeedbackParameters(Request):
    """The stored prediction that the labels belong to, or the model for the rows in the request."""

    prediction: PredictionId | None = Field(None, description="the `id` of a stored prediction")
    model: ModelName | None = None
    version: Reference | None = Field(None, description="number or alias; default: the newest")
    prune: Prune = 0.0
    horizon: Horizon = None

    @property
    def options(self) -> PredictOptions:
        """The options for predicting the rows, with defaults for all others."""
        return PredictOptions(prune=self.prune, horizon=self.horizon, intervals=())


class FeedbackRequest(FeedbackParameters):
    """The whole body. This class only documents it."""

    inputs: SkipValidation[list[Json] | list[list[Any]] | dict[str, list[Any]] | None] = Field(
        None, description="rows as in POST /predict, if there is no `prediction`"
    )
    future: SkipValidation[dict[str, list[Any]] | None] = Field(
        None, description="forecasting only: columns of the covariates, one value per step ahead"
    )
    truth: SkipValidation[list[str | float | bool | None]] = Field(
        description="the target of each row (or step of a forecast), null if it is not known"
    )
    weights: SkipValidation[list[float] | None] = Field(
        None,
        description="the weight of each row: one of 2 counts as two rows, one of 0 is left out",
    )


class FileParameters(Request):
    """The query of a request whose body is a file of rows with their true values."""

    model: ModelName
    version: Reference | None = Field(None, description="number or alias; default: the newest")
    truth: ColumnName = Field(description="the column of true values; an empty cell is unknown")
    prune: Prune = 0.0

    @property
    def options(self) -> PredictOptions:
        """The options for predicting the rows, with defaults for all others."""
        return PredictOptions(prune=self.prune, intervals=())


class RollingResponse(Response):
    """The scores of a version on its newest labelled rows, the window.

    `metrics` has the metrics of a version, `calibration_error`, and the log likelihood on held-out
    rows (`expected_log_likelihood`) for comparison. `check` compares the labels with the held-out
    rows: counts, p-values, and the p-value at which there is an alarm. Versions with conformal
    intervals have by level `coverage` of the credible ones, `conformal_coverage`,
    `adaptive_coverage` (at the levels adapted to the labels known when each row was predicted) and
    `adapted_level`, at which adaptive intervals are given now.
    """

    model: str
    version: int
    window: int = Field(description="most rows that count, CREDENCE_FEEDBACK_ROWS")
    updated_at: datetime | None = Field(description="time of the newest labels")
    metrics: Json


class FeedbackResponse(Response):
    """The scores of the labelled rows, and of the version's window."""

    id: str
    prediction: str | None
    model: str
    version: int
    rows: int = Field(description="number of rows with a known target")
    metrics: Json = Field(description="scores of these rows")
    rolling: RollingResponse
    reading: Json | None = Field(None, description="only for files: how the file was read")
    ignored: list[str] | None = Field(
        None, description="only for files: columns that are not features"
    )
    notes: list[str] | None = Field(
        None,
        description="for files, and where a number is read as missing: what you should know about "
        "the rows",
    )
