"""Requests and responses of predictions. Rows and arrays are not parsed with these classes."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from app.schemas.common import DatasetId, Json, ModelName, Reference, Response
from app.schemas.datasets import AnySource
from core.offline.destination import Destination
from models.config import ColumnName
from models.prediction.options import BatchOptions, IntervalKind, PredictOptions, Sampler
from models.prediction.outputs.reasons import Code

MAX_DEADLINE_MS = 600_000  # longer than any client keeps a connection


class VersionOptions(BaseModel, BatchOptions, frozen=True):
    """The model and the options that `POST /predict` and `POST /predict/batch` share."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    model: ModelName
    version: Reference | None = Field(None, description="number or alias; default: the newest")


class BatchRequest(VersionOptions, frozen=True):
    """A model, a data set, and those options of `POST /predict` that apply to a data set."""

    dataset: DatasetId | None = Field(None, description="this, or source")
    source: AnySource | None = Field(
        None,
        description="read now into a data set, as by POST /datasets; its columns are read as those "
        "of the training data were",
    )
    destination: Destination | None = Field(
        None, description="default: the service's store, from which GET /jobs/{id}/result reads"
    )
    keep: Annotated[tuple[ColumnName, ...], Field(max_length=100)] = Field(
        (), description="columns of the data set to copy beside the predictions, such as a key"
    )
    dry_run: bool = Field(
        False, description="answer 200 with what the job would take, and queue none"
    )
    chunk_rows: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        None,
        description="rows, or series of a forecaster, that a worker predicts at a time; default: "
        "some seconds of work",
    )


class EstimateResponse(Response):
    """What an offline prediction would take, from a measurement on its first rows."""

    dataset: str
    rows: int = Field(description="or series of a forecaster")
    chunks: int
    seconds: float = Field(description="of one worker that does nothing else")
    bytes: int = Field(description="of the result's files together")
    measured_rows: int


class PredictParameters(VersionOptions, PredictOptions, frozen=True):
    """A request without its rows."""

    deadline_ms: Annotated[float, Field(gt=0.0, le=MAX_DEADLINE_MS)] | None = Field(
        None,
        description="milliseconds from the arrival of the request; if the requested samples take "
        "longer, fewer are drawn (`samples` in the response), or the status is 503",
    )
    store: bool = Field(
        False,
        description="store the request, so that you can send its labels with the response's `id` "
        "to /feedback; not for language models",
    )


class PredictRequest(PredictParameters, frozen=True):
    """The whole body. This class only documents it: `core.inputs.records` reads the rows."""

    inputs: SkipValidation[list[Json] | list[list[Any]] | list[str] | dict[str, list[Any]]] = Field(
        description="records, lists in feature order, or columns; null is a missing value; for a "
        "language model a list of strings; for a forecast the history, oldest first, of one series "
        "or of several; rows after the last known target of a series are steps ahead, which give "
        "covariates"
    )
    future: SkipValidation[dict[str, list[Any]] | None] = Field(
        None,
        description="forecasting of one series: columns of the covariates, one value per step "
        "ahead; or give these steps as rows of the inputs, without a target",
    )


class Variances(Response):
    """Per row (and class), in squared units of the target."""

    aleatoric: list[Any]
    epistemic: list[Any]
    total: list[Any]


class IntervalResponse(Response):
    """Bounds per row, including the noise; null if a conformal interval is unbounded."""

    level: float
    kind: IntervalKind
    adapted_level: float | None = Field(
        None,
        ge=0.0,
        le=1.0,
        description="kind `adaptive` only: the level of the conformal interval that is given "
        "instead; it follows the labels of feedback, so that coverage stays near `level`",
    )
    lower: list[float | None]
    upper: list[float | None]
    closed: bool | None = Field(
        None,
        description="true for whole numbers, which have a probability of their own: both bounds "
        "are included. One without which the interval still has this probability is left out",
    )


class ExceedanceResponse(Response):
    """The probability that the target is strictly above a threshold, per row."""

    threshold: float
    probability: list[float]
    any_above: list[float] | None = Field(
        None,
        description="forecasting only: the probability that the path is above the threshold at "
        "some step up to this one; the last step of a series has that of the whole horizon",
    )
    any_below: list[float] | None = Field(
        None, description="forecasting only: the same of a value below the threshold"
    )


class ContributionParts(Response):
    """Rows × features; for the mean of a classifier rows × features × classes."""

    mean: list[list[Any]]
    aleatoric: list[list[float | None]]
    epistemic: list[list[float | None]]


class BaseResponse(Response):
    """The mean of each part over the background rows (a sample of the training rows).

    For the mean of a classifier one value per class.
    """

    mean: float | list[float] | None
    aleatoric: float | None
    epistemic: float | None


class ContributionsResponse(ContributionParts):
    """Shapley values of the features, with their standard errors.

    base + Σ over the features = the row's own mean, variance or entropy. Numbers: mean in units of
    the target, aleatoric and epistemic in squared units. Classes: mean of the probabilities,
    aleatoric of the expected entropy and epistemic of the mutual information, in nats.
    """

    features: list[str]
    standard_error: ContributionParts
    base: BaseResponse


class SetsResponse(Response):
    """A set of classes per row, the most probable class first; never empty."""

    level: float
    kind: IntervalKind = Field(
        description="credible: the smallest set whose predicted probability is `level` or more; "
        "conformal, for calibrated versions: a set that contains the true class with this "
        "probability for rows like the calibration rows"
    )
    classes: list[list[Any]]


class SeenResponse(Response):
    """What training saw in a column: the range of a number or date, or the categories; of a number
    in a gap the values on both sides of it."""

    lowest: float | str | None = Field(None, description="without stray values")
    highest: float | str | None = None
    levels: list[str | bool] | None = Field(None, description="at most the ten most frequent")
    count: int | None = Field(None, description="how many categories there were")


class ReasonResponse(Response):
    """Why a row is unlike those of training."""

    column: str | None = Field(description="null if no single column explains it")
    code: Code
    value: float | str | bool | None = Field(
        description="the row's value, null if missing; of a tensor its most distant element"
    )
    seen: SeenResponse | None
    text: str = Field(description="the reason in words: `Age is 900; training saw 17 to 90`")


class QuantileResponse(Response):
    """The quantile of the target at probability `p`, per row."""

    p: float
    values: list[float | None]


class AtomResponse(Response):
    """A value with a probability of its own, which the density does not include."""

    value: float
    probability: list[float]


class DensityResponse(Response):
    """The predictive density of each row, at increasing values that hold 99.8 % of it."""

    kind: Literal["density", "probability"] = Field(
        description="density: per unit of the target; probability: of each of `values`, for a "
        "target of whole numbers"
    )
    values: list[list[float]] = Field(description="rows × points")
    density: list[list[float]] = Field(description="rows × points")
    atoms: list[AtomResponse] = Field(description="such as 0 in a target that is mostly zero")


class DecisionsResponse(Response):
    """What to do in each row, in the unit of the costs."""

    action: list[Any] = Field(
        description="the one with the least expected cost, the first of equal ones: the name of a "
        "row of the matrix, or a number in the target's unit; null if unbounded, because one side "
        "costs nothing"
    )
    expected_cost: list[float | None] = Field(description="of the action")
    abstain: list[bool] | None = Field(
        None, description="with `abstain` in costs: whether asking a person costs less"
    )
    value_of_information: list[float | None] = Field(
        description="by how much the expected cost falls if the truth is known first"
    )
    value_of_model_information: list[float | None] | None = Field(
        None,
        description="by how much it falls if the weights are known first: what more training data "
        "can save; not for forecasts",
    )


class TotalIntervalResponse(Response):
    """Bounds of each sum; null if a conformal interval is unbounded."""

    level: float
    kind: Literal["credible", "conformal"]
    lower: list[float | None]
    upper: list[float | None]


class SumsResponse(Response):
    """Of sums, one per step."""

    mean: list[float | None]
    median: list[float | None]
    deviation: list[float | None] = Field(
        description="the standard deviation, in the target's unit"
    )
    mc_error: list[float | None] | None = Field(description="of the mean, as `mc_error`")
    intervals: list[TotalIntervalResponse]
    quantiles: list[QuantileResponse] | None = Field(None, description="with quantiles")
    exceeds: list[ExceedanceResponse] | None = Field(
        None,
        description="with thresholds in totals: the probability that the sum is strictly above "
        "each; where values cannot be negative, that a stock of so much has run out by then",
    )


class SeriesTotalsResponse(Response):
    """Of the sum over all series of the request."""

    steps: SumsResponse = Field(description="of each step ahead")
    sums: SumsResponse = Field(description="from the first step to each")


class GroupTotalsResponse(SeriesTotalsResponse):
    """Of the sum over the series of a group."""

    group: str = Field(description="its name; of a column's value such as `region=north`")
    series: list[str] = Field(description="the keys of its series")


class TotalsResponse(SumsResponse):
    """Of the sum from the first step to each step ahead; the last is that of the whole horizon.

    Of several series those of the first come first. With `reconcile` all sums here agree: those of
    the series, of the groups, and of series that are declared sums.
    """

    series: SeriesTotalsResponse | None = Field(
        None,
        description="with series or groups in totals: over all series of the request; with "
        "reconcile, over those that are no declared sums",
    )
    groups: list[GroupTotalsResponse] | None = Field(
        None,
        description="with groups in totals. Draws of groups are sums of joint draws of their "
        "series: groups that share no series and have all of them add up to `series` draw by draw",
    )


class BoundsResponse(Response):
    """Bounds per row, including the noise; null if they are unbounded."""

    lower: list[float | None]
    upper: list[float | None]


class JointResponse(Response):
    """Intervals that contain all targets of a row together with probability `level`."""

    level: float
    intervals: dict[str, BoundsResponse] = Field(description="by target")


class JointAnomalyResponse(Response):
    """All newest values of a series together, by Fisher's method; a value per series."""

    series: list[str] | None = None
    p_value: list[float | None]
    flagged: list[bool]


class AnomaliesResponse(Response):
    """The newest values of each series, oldest first, series after series.

    Each is compared with its predictive distribution from the values before it. A value that is
    missing, or after a hole longer than the trained horizon, is not scored: null.
    """

    series: list[str] | None = Field(None, description="of models with a key")
    times: list[Any]
    value: list[float | None]
    p_value: list[float | None] = Field(
        description="the probability of a value at least as far out on either side: uniform from 0 "
        "to 1 while the series goes on as in training"
    )
    surprise: list[float | None] = Field(description="−log₂ of the p-value, in bits")
    flagged: list[bool] = Field(
        description="whether the p-value is below the version's false-alarm rate "
        "(`out_of_distribution.false_alarm_rate`)"
    )
    joint: JointAnomalyResponse


class TimingsResponse(Response):
    """Milliseconds in the queue, in the engine, and in total."""

    queue: float
    compute: float
    total: float


class PredictResponse(Response):
    """The response. This class only documents it. Arrays are in row order, then by class."""

    id: str | None = Field(None, description="with store: the `prediction` of /feedback")
    model: str
    version: int
    prune: float
    samples: int
    seed: int
    sampler: Sampler
    labels: list[Any] | None = Field(None, description="classification only")
    classes: list[Any] | None = Field(None, description="classification only")
    probabilities: list[list[float]] | None = Field(None, description="classification only")
    series: list[str] | None = Field(
        None,
        description="forecasting with a key: the series of each element; series come one after the "
        "other, as they first occur in the inputs",
    )
    steps: list[int] | None = Field(
        None, description="forecasting with a key: the number of the step ahead, from 1"
    )
    times: list[Any] | None = Field(None, description="forecasting only: times of the steps ahead")
    paths: int | None = Field(None, description="forecasting only: paths per weight draw")
    mean: list[Any]
    median: list[Any] | None = Field(None, description="numbers only, in units of the target")
    variance: Variances
    intervals: list[IntervalResponse]
    mc_error: list[Any] | None = Field(
        description="standard error of `mean` from finite sampling; null if it cannot be estimated"
    )
    mc_errors: dict[str, list[Any]] | None = Field(
        None,
        description="with return_mc_errors: the standard error of every output, by name. Numbers: "
        "`mean`, `median`, `aleatoric_variance`, `epistemic_variance`, `total_variance`, bounds "
        "such as `lower_0.9` and `conformal_lower_0.9`, and what the request asks for: "
        "`exceeds_10.0`, of forecasts also `any_above_10.0` and `any_below_10.0`, "
        "`quantile_0.25`, `density`. Classes: `probabilities`, the variances, "
        "`predictive_entropy`, `expected_entropy` and `mutual_information`",
    )
    entropy: Variances | None = Field(None, description="classification only, in nats")
    out_of_distribution: list[bool] = Field(description="rows unlike those of training")
    ood_score: list[float | None] = Field(
        description="−log₁₀ of the probability that a row like those of training is at least as "
        "unusual, in one column or in how the columns go together; for forecasts the epistemic "
        "variance of a step's change. Above the variant's threshold a row is out of distribution"
    )
    reasons: list[list[ReasonResponse]] | None = Field(
        None,
        description="per row, the strongest first, at most five; rows that are not flagged have "
        "none. Models of earlier releases give no reasons",
    )
    exceeds: list[ExceedanceResponse] | None = Field(
        None, description="with exceeds: one per threshold, in the order of the request"
    )
    contributions: ContributionsResponse | None = Field(
        None, description="with explain: what each feature contributes"
    )
    sets: list[SetsResponse] | None = Field(
        None, description="with set_level: one per kind, the credible one first"
    )
    quantiles: list[QuantileResponse] | None = Field(
        None, description="with quantiles: one per probability, in the order of the request"
    )
    density: DensityResponse | None = Field(None, description="with density")
    decisions: DecisionsResponse | None = Field(
        None, description="with costs: the action with the least expected cost"
    )
    anomalies: AnomaliesResponse | None = Field(
        None, description="with anomalies: how improbable the newest values of each series are"
    )
    totals: TotalsResponse | None = Field(
        None, description="with totals: sums of a forecast from the first step to each step"
    )
    targets: dict[str, Json] | None = Field(
        None,
        description="several targets only: by name, the members `mean` to `reasons`, and those "
        "asked for, of each target; at the top are those of the first one",
    )
    joint: list[JointResponse] | None = Field(
        None, description="several targets only: one per level of `intervals`"
    )
    joint_draws: dict[str, list[list[float]]] | None = Field(
        None,
        description="several targets only, with return_draws: by target, samples × rows, the noise "
        "included. The k-th draws of a row's targets belong together",
    )
    abstained: list[bool] | None = Field(
        None, description="with abstain_above: rows for a human to decide; they keep their values"
    )
    draws: list[Any] | None = Field(
        None,
        description="with return_draws: samples × rows; for a forecast, paths × steps, those of "
        "all series one after the other",
    )
    reading: Json | None = Field(None, description="only for files: how the file was read")
    ignored: list[str] | None = Field(
        None, description="only for files: columns that are not features"
    )
    notes: list[str] | None = Field(
        None,
        description="for files, and where a number is read as missing: what you should know about "
        "the rows, such as cells that cannot be read",
    )
    kept: dict[str, list[Any]] | None = Field(
        None, description="with keep: columns of the file, as they stand there"
    )
    timings_ms: TimingsResponse


class NextTokenResponse(Response):
    """A token that may follow, and its probability."""

    token: str
    probability: float


class Entropies(Response):
    """Entropies of the next token of each text, in nats; total = aleatoric + epistemic."""

    total: list[float]
    aleatoric: list[float]
    epistemic: list[float]


class TextPredictResponse(Response):
    """The response of a language model. This class only documents it. Arrays are in text order."""

    model: str
    version: int
    prune: float
    samples: int
    seed: int
    sampler: Sampler
    log_likelihood: list[float] = Field(description="in nats, with the end of the sequence")
    perplexity: list[float] = Field(description="per token, with the end of the sequence")
    token_log_likelihoods: list[list[float]] = Field(description="their sum is log_likelihood")
    next_tokens: list[list[NextTokenResponse]] = Field(description="the `top` most likely ones")
    entropy: Entropies
    timings_ms: TimingsResponse
