"""Requests and responses of `/predict`. Rows and arrays never pass through these classes."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from app.schemas.common import Json, ModelName, Reference, Response
from models.prediction.options import BatchOptions, IntervalKind, PredictOptions, Sampler

MAX_DEADLINE_MS = 600_000  # longer than any client holds a connection


class VersionOptions(BaseModel, BatchOptions, frozen=True):
    """Which model predicts, and how: the same for some rows and for a whole data set."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    model: ModelName
    version: Reference | None = Field(None, description="number or alias; default: the newest")


class PredictParameters(VersionOptions, PredictOptions, frozen=True):
    """All of a request but its rows."""

    deadline_ms: Annotated[float, Field(gt=0.0, le=MAX_DEADLINE_MS)] | None = Field(
        None,
        description="milliseconds from the arrival of the request: fewer samples are drawn where "
        "that makes it possible to answer in time (`samples` in the answer), else 503",
    )
    store: bool = Field(
        False,
        description="keep the request, so that its labels can come back by the answer's `id`; "
        "not for language models",
    )


class PredictRequest(PredictParameters, frozen=True):
    """The whole body, for the documentation: `inputs` are read by `app.serving.inputs`."""

    inputs: SkipValidation[list[Json] | list[list[Any]] | list[str] | dict[str, list[Any]]] = Field(
        description="records, lists in feature order, or columns; null is a missing value; "
        "of a language model a list of strings; of a forecast the history, in the order of time"
    )
    future: SkipValidation[dict[str, list[Any]] | None] = Field(
        None, description="forecasting only: columns of the covariates, a value for each step ahead"
    )


class Variances(Response):
    """Per row (and class), in squared units of the target."""

    aleatoric: list[Any]
    epistemic: list[Any]
    total: list[Any]


class IntervalResponse(Response):
    """Bounds per row, noise included; null where a conformal interval is unbounded."""

    level: float
    kind: IntervalKind
    lower: list[float | None]
    upper: list[float | None]


class TimingsResponse(Response):
    """Milliseconds in the queue, in the engine, and in all."""

    queue: float
    compute: float
    total: float


class PredictResponse(Response):
    """The answer, for the documentation: arrays in row order, classes on their second axis."""

    id: str | None = Field(None, description="with store: by which its labels can come back")
    model: str
    version: int
    prune: float
    samples: int
    seed: int
    sampler: Sampler
    labels: list[Any] | None = Field(None, description="classification only")
    classes: list[Any] | None = Field(None, description="classification only")
    probabilities: list[list[float]] | None = Field(None, description="classification only")
    times: list[Any] | None = Field(None, description="forecasting only: of the steps ahead")
    paths: int | None = Field(None, description="forecasting only: paths per weight draw")
    mean: list[Any]
    variance: Variances
    intervals: list[IntervalResponse]
    mc_error: list[Any] | None = Field(description="null where it cannot be estimated")
    entropy: Variances | None = Field(None, description="classification only, in nats")
    out_of_distribution: list[bool] = Field(description="rows unlike those of training")
    ood_score: list[float | None] = Field(
        description="what the version's variant compares with its threshold"
    )
    abstained: list[bool] | None = Field(
        None, description="with abstain_above: rows to leave to a human; their numbers stay"
    )
    draws: list[Any] | None = Field(
        None, description="with return_draws: samples × rows; of a forecast paths × steps"
    )
    timings_ms: TimingsResponse


class NextTokenResponse(Response):
    """A token that may follow, and its probability."""

    token: str
    probability: float


class Entropies(Response):
    """Per text, of the next token, in nats; total = aleatoric + epistemic."""

    total: list[float]
    aleatoric: list[float]
    epistemic: list[float]


class TextPredictResponse(Response):
    """The answer of a language model, for the documentation: arrays in the order of the texts."""

    model: str
    version: int
    prune: float
    samples: int
    seed: int
    sampler: Sampler
    log_likelihood: list[float] = Field(description="nats, with the end of the sequence")
    perplexity: list[float] = Field(description="per token, the end of the sequence among them")
    token_log_likelihoods: list[list[float]] = Field(description="they add up to the text's")
    next_tokens: list[list[NextTokenResponse]] = Field(description="`top` of them, likeliest first")
    entropy: Entropies
    timings_ms: TimingsResponse
