"""Types of the service's JSON responses: dictionaries with known keys, as in `docs/api.md`."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, Required, TypedDict, final

Json = dict[str, Any]
Kind = Literal["aleatoric", "epistemic", "total"]
JobStatus = Literal["queued", "running", "cancelling", "succeeded", "failed", "cancelled"]
Shared = Literal["datasets", "jobs", "models"]


class AuditLine(TypedDict):
    """One entry of the audit log."""

    time: str
    actor: str
    key: str | None
    owner: str | None
    request_id: str | None
    action: str
    object: str
    details: Json


class ReadingOptions(TypedDict, total=False):
    """How a file is written: what is not given is found out; see `POST /datasets`."""

    delimiter: str
    quote: str
    encoding: str
    decimal: Literal[".", ","]
    header: bool
    skip: int
    comment: str
    index: bool
    sheet: str


class DatasetOptions(ReadingOptions, total=False):
    """How a data set is made from a file; `unique_rows` leaves out copies of earlier rows."""

    unique_rows: bool


class ColumnFix(TypedDict, total=False):
    """How to read one column; what is not given stays as it was found out."""

    name: Required[str]
    type: Literal["number", "category", "boolean", "datetime", "text"]
    format: str
    missing: Sequence[str]
    use: bool
    levels: Mapping[str, str]


class ColumnReading(TypedDict):
    """How the texts of a column were read; a `format` of null is the plain form."""

    format: str | None
    missing: list[str]
    levels: NotRequired[dict[str, str]]


class Column(TypedDict):
    """One column of a data set; its statistics ignore missing values.

    `use` tells whether it is a feature unless a training names its features.
    """

    name: str
    type: str
    missing: int
    shape: NotRequired[list[int]]
    min: NotRequired[float]
    max: NotRequired[float]
    mean: NotRequired[float]
    std: NotRequired[float]
    levels: NotRequired[list[str]]
    num_levels: NotRequired[int]
    use: bool
    reading: NotRequired[ColumnReading]


class Example(TypedDict):
    """A cell that a finding is about, with its line in the file, counting from 1."""

    line: int | None
    value: str


class Finding(TypedDict):
    """Something about a file or a column that its owner should know before a training.

    `fix` is a body for `POST /datasets/{id}/columns`. Those that are `advised` fit together.
    """

    code: str
    column: str | None
    severity: Literal["info", "warning", "error"]
    message: str
    rows: int
    examples: list[Example]
    fix: Json | None
    advised: bool


class Dataset(TypedDict):
    """A data set; `reading` tells how its file was read, `source` where from."""

    id: str
    name: str
    format: str
    rows: int
    columns: list[Column]
    num_columns: NotRequired[int]
    bytes: int
    sha256: str
    created_at: str
    reading: Json
    findings: list[Finding]
    source: NotRequired[Json | None]
    refreshed_from: NotRequired[str]


class Progress(TypedDict):
    """Progress of a job: `fraction` covers all stages, `epoch` only the current `stage`.

    An offline prediction counts chunks instead of epochs, a comparison methods.
    """

    stage: NotRequired[str]
    epoch: NotRequired[int]
    epochs: NotRequired[int]
    chunk: NotRequired[int]
    chunks: NotRequired[int]
    method: NotRequired[int]
    methods: NotRequired[int]
    fraction: float
    eta_seconds: float | None


class JobError(TypedDict):
    """Why a job failed."""

    code: str
    message: str


class Job(TypedDict):
    """A training, an evaluation, an offline prediction or a comparison.

    `parent` is the comparison that a training is a part of.
    """

    id: str
    parent: NotRequired[str]
    kind: Literal["train", "evaluate", "acquire", "predict", "compare"]
    status: JobStatus
    model: str
    version: int | None
    attempt: int
    queue_position: int | None
    progress: Progress | None
    metrics: Json
    notes: NotRequired[list[str]]
    error: JobError | None
    request: Json
    created_at: str
    started_at: str | None
    finished_at: str | None


class ScheduleRun(TypedDict):
    """A run of a schedule; `outcome` is what its gate measured and decided, and the `reason`."""

    number: int
    reason: Literal["cron", "refresh", "manual"]
    due_at: str
    missed: int
    job: str | None
    status: str
    version: int | None
    outcome: Json | None
    created_at: str


class Schedule(TypedDict):
    """A training that is repeated; `runs` are the newest ten."""

    name: str
    owner: NotRequired[str]
    model: str
    alias: str
    train: Json
    dataset: str
    cron: str | None
    time_zone: str
    on: Literal["refresh"] | None
    gate: Json
    next_due: str | None
    created_at: str
    runs: list[ScheduleRun]


class ComparedMethod(TypedDict):
    """The scores of one method of a comparison; for a failed method all numbers are null.

    It also has the scores of the task: `rmse`, `crps`, `coverage_0.9`, or `accuracy`, `brier`,
    `ece`. `verdict` is by the log likelihoods of the same rows, whose mean `difference` to the best
    method has the standard error `difference_error`; the best one's is too good by `optimism`.
    """

    name: str
    method: str
    job: str
    status: JobStatus
    version: int | None
    error: JobError | None
    log_likelihood: float | None
    ood_auroc: float | None
    train_seconds: float | None
    predict_ms: float | None
    bytes: int | None
    num_weights: int | None
    standard_errors: Json
    compared_rows: int | None
    verdict: Literal["best", "no difference", "worse"] | None
    difference: float | None
    difference_error: float | None
    optimism: float | None


class Feature(TypedDict):
    """An input column of a model and its type."""

    name: str
    type: str


class Detector(TypedDict):
    """Marks a row as unlike those of training if its `score` exceeds `threshold`."""

    score: str
    threshold: float
    false_alarm_rate: float
    rows: int


class Auto(TypedDict):
    """What answers predictions without `samples`: errors and cost are relative to 100 samples."""

    sampler: Literal["sobol", "monte_carlo", "moments"]
    samples: int
    nodes: int
    errors: dict[str, float]
    bias: dict[str, float]
    cost: float
    rows: int


class Variant(TypedDict):
    """A version with the fraction `prune` of its weights removed; 0.0 is the full model."""

    prune: float
    num_weights: int
    bytes: int
    calibration: NotRequired[Json | None]
    metrics: Json
    out_of_distribution: NotRequired[Detector]
    auto: NotRequired[Auto]


class Baseline(TypedDict):
    """A simple method on the same rows; `rows` is the number of rows that it learned from."""

    kind: Literal["constant", "linear", "boosted_trees"]
    metrics: Json
    seconds: float
    rows: int


class Candidate(TypedDict):
    """A candidate of a selection.

    `difference` is its score minus that of the best one, `difference_error` the standard error of
    the paired difference.
    """

    name: str
    settings: Json
    score: float
    standard_error: float
    difference: float
    difference_error: float
    kept: bool


class Selection(TypedDict):
    """What training compared to choose the recipe; without candidates, nothing."""

    candidates: list[Candidate]
    metric: str
    rows: int
    note: str


class SharedImportance(TypedDict):
    """A feature that shares importance with another, and their association."""

    name: str
    value: float


class FeatureImportance(TypedDict):
    """The mean size of a feature's contributions, with standard errors over rows."""

    name: str
    mean: float
    mean_error: float
    aleatoric: float
    aleatoric_error: float
    epistemic: float
    epistemic_error: float
    correlated_with: list[SharedImportance]


class Importance(TypedDict):
    """The importance of features on held-out rows; without rows, nothing was measured."""

    rows: int
    features: list[FeatureImportance]


class Version(TypedDict):
    """One immutable version of a model."""

    model: str
    version: int
    aliases: list[str]
    task: str
    features: list[Feature]
    target: str
    classes: NotRequired[list[str | int | float | bool]]
    forecast: NotRequired[Json]
    forecast_members: NotRequired[list[Json]]
    network: Json
    method: Json
    training: Json
    num_weights: int
    metrics: Json
    variants: list[Variant]
    baselines: list[Baseline]
    recommended_variant: float
    selection: Selection
    importance: Importance
    notes: list[str]
    joint: NotRequired[Json]
    imported: NotRequired[Json]
    dataset: str
    job: str
    created_at: str


class Card(TypedDict):
    """A model card: training data, settings, scores and known limits of a version."""

    model: str
    version: int
    aliases: list[str]
    task: str
    target: str
    features: list[Feature]
    classes: NotRequired[list[str | int | float | bool]]
    num_weights: int
    dataset: str
    job: str
    created_at: str
    rows: Json
    recipe: list[Json]
    learning_curve: list[Json]
    variants: list[Variant]
    baselines: list[Baseline]
    recommended_variant: float
    selection: Selection
    importance: Importance
    signal_to_noise: Json | None
    out_of_distribution: list[Json]
    notes: list[str]
    limits: list[str]


class Model(TypedDict):
    """A model in the list of models, with its newest version."""

    name: str
    version: int
    task: str
    target: str
    num_weights: int
    created_at: str


IntervalKind = Literal["credible", "conformal", "adaptive"]


class Interval(TypedDict):
    """Bounds per row.

    Credible ones are equal-tailed and contain `level` of the predictive distribution. Conformal
    ones contain the target with that probability for rows like those of calibration; null means
    that these were too few. Adaptive ones are conformal ones at `adapted_level`, which follows the
    labels that the service received. Those of whole numbers are `closed`: both bounds are included,
    and one without which the interval still contains `level` is left out.
    """

    level: float
    kind: IntervalKind
    adapted_level: NotRequired[float]
    lower: list[float | None]
    upper: list[float | None]
    closed: NotRequired[bool]


@final
class Exceedance(TypedDict):
    """The probability that the target is above a threshold, per row.

    Of forecasts also that it is above, or below, at some step up to this one.
    """

    threshold: float
    probability: list[float]
    any_above: NotRequired[list[float]]
    any_below: NotRequired[list[float]]


class Costs(TypedDict, total=False):
    """What errors cost: a `matrix` of actions and classes, or `over` and `under` of numbers."""

    matrix: Sequence[Sequence[float]]
    actions: Sequence[str]
    over: float
    under: float
    abstain: float


@final
class Decisions(TypedDict):
    """The action with the least expected cost, per row, in the unit of the costs."""

    action: list[Any]
    expected_cost: list[float | None]
    abstain: NotRequired[list[bool]]
    value_of_information: list[float | None]
    value_of_model_information: NotRequired[list[float | None]]


@final
class ContributionParts(TypedDict):
    """Rows × features; of a classifier's mean rows × features × classes."""

    mean: list[Any]
    aleatoric: list[list[float]]
    epistemic: list[list[float]]


@final
class ContributionsBase(TypedDict):
    """What the contributions add up from; of a classifier's mean one value per class."""

    mean: float | list[float]
    aleatoric: float
    epistemic: float


@final
class Contributions(TypedDict):
    """With `explain`: what each feature contributes; base + Σ contributions = the answer."""

    features: list[str]
    mean: list[Any]
    aleatoric: list[list[float]]
    epistemic: list[list[float]]
    standard_error: ContributionParts
    base: ContributionsBase


@final
class ClassSet(TypedDict):
    """A set of classes per row, the most probable class first; never empty.

    Credible ones have the predicted probability `level` or more. Conformal ones contain the true
    class with that probability for rows like those of calibration.
    """

    level: float
    kind: Literal["credible", "conformal"]
    classes: list[list[str | int | float | bool]]


@final
class RowsToLabel(TypedDict):
    """Rows of a data set, counting from 0, the best first, and what their labels tell in nats."""

    rows: list[int]
    information: list[float]
    joint_information: float
    candidates: int


@final
class ExpectedScore(TypedDict):
    """A score to expect of rows without labels, with its interval.

    `promised` is the score of the version's held-out rows, None where it was not kept. It `leaves`
    if the promised score is better than all of the interval. `actual` is of the rows that have a
    label.
    """

    expected: float | None
    lower: float | None
    upper: float | None
    promised: float | None
    leaves: bool
    actual: NotRequired[float]


@final
class UnlikeRows(TypedDict):
    """The share of rows unlike those of training, and of rows like them that is flagged."""

    share: float
    promised: float
    leaves: bool


@final
class ExpectedScores(TypedDict):
    """The scores to expect of a version on rows whose truth is not known."""

    model: str
    version: int
    prune: float
    dataset: str
    rows: int
    dataset_rows: int
    seed: int
    level: float
    scores: dict[str, ExpectedScore]
    unlike: UnlikeRows
    labelled_rows: int
    alert: bool
    reasons: list[str]
    notes: list[str]


@final
class Quantile(TypedDict):
    """The value that the target is at most with probability `p`, per row."""

    p: float
    values: list[float | None]


@final
class Atom(TypedDict):
    """A value with a probability of its own, which a density does not count."""

    value: float
    probability: list[float]


@final
class PredictedDensity(TypedDict):
    """The predictive density per row: rows × points, at increasing values.

    With the kind `probability` only whole numbers occur, and these are the probabilities of
    `values`.
    """

    kind: Literal["density", "probability"]
    values: list[list[float]]
    density: list[list[float]]
    atoms: list[Atom]


class DensityOptions(TypedDict, total=False):
    """On how many values each row's density is drawn, from 2 to 512."""

    points: int


class TotalsOptions(TypedDict, total=False):
    """Sums of a forecast from its first step to each.

    `exceeds` are thresholds of the sums, such as the stock; `series` adds the sums over all series.
    `groups` adds those of groups: columns whose values group the series, or lists of series by the
    name of their group. With `reconcile` a series with the name of a group agrees with those that
    it sums up.
    """

    exceeds: Sequence[float]
    series: bool
    groups: Sequence[str] | Mapping[str, Sequence[str]]
    reconcile: bool


class PredictSettings(ReadingOptions, total=False):
    """Options of a prediction, and of reading if the rows are in a file; see `docs/api.md`.

    Of a file, `keep` names columns to copy before the predictions; "*" is all of them.
    """

    samples: int
    seed: int
    prune: float
    intervals: Sequence[float]
    interval_kinds: Sequence[IntervalKind]
    sampler: Literal["auto", "sobol", "monte_carlo", "moments"]
    abstain_above: float
    exceeds: Sequence[float]
    explain: bool
    set_level: float
    quantiles: Sequence[float]
    density: DensityOptions
    costs: Costs
    totals: TotalsOptions
    return_draws: bool
    return_mc_errors: bool
    target_mc_error: float
    deadline_ms: float
    horizon: int
    anomalies: int
    store: bool
    keep: Sequence[str]


class Seen(TypedDict):
    """What training saw in a column: the range of numbers and dates, or up to ten levels; of a
    number in a gap the values on both sides of it."""

    lowest: NotRequired[float | str | None]
    highest: NotRequired[float | str | None]
    levels: NotRequired[list[str | bool]]
    count: NotRequired[int]


class Reason(TypedDict):
    """Why a row is unlike those of training; without a column it is the row as a whole."""

    column: str | None
    code: Literal["out_of_range", "gap", "unseen_level", "missing_unseen", "unusual_combination"]
    value: float | str | bool | None
    seen: Seen | None
    text: str


@final
class Totals(TypedDict):
    """The sum of a forecast from its first step to each step, in step order."""

    mean: list[float | None]
    median: list[float | None]
    deviation: list[float | None]
    mc_error: list[float | None] | None
    intervals: list[Interval]
    quantiles: NotRequired[list[Quantile]]
    exceeds: NotRequired[list[Exceedance]]
    groups: NotRequired[list[Json]]
    series: NotRequired[dict[Literal["steps", "sums"], Json]]


@final
class JointAnomalies(TypedDict):
    """Of the newest values of a series together; a value per series."""

    series: NotRequired[list[str]]
    p_value: list[float | None]
    flagged: list[bool]


@final
class Anomalies(TypedDict):
    """How improbable the newest values are, oldest first, series after series."""

    series: NotRequired[list[str]]
    times: list[Any]
    value: list[float | None]
    p_value: list[float | None]
    surprise: list[float | None]
    flagged: list[bool]
    joint: JointAnomalies


@final
class PredictionAnswer(TypedDict):
    """Arrays in row order; for a classifier `mean` and the variances are rows × classes."""

    id: NotRequired[str]
    model: str
    version: int
    prune: float
    samples: int
    seed: int
    sampler: str
    mean: list[Any]
    variance: dict[Kind, list[Any]]
    intervals: list[Interval]
    mc_error: list[Any] | None
    mc_errors: NotRequired[dict[str, list[Any]]]
    out_of_distribution: list[bool]
    ood_score: list[float | None]
    reasons: NotRequired[list[list[Reason]]]
    timings_ms: dict[str, float]
    abstained: NotRequired[list[bool]]
    exceeds: NotRequired[list[Exceedance]]
    contributions: NotRequired[Contributions]
    sets: NotRequired[list[ClassSet]]
    quantiles: NotRequired[list[Quantile]]
    density: NotRequired[PredictedDensity]
    decisions: NotRequired[Decisions]
    totals: NotRequired[Totals]
    targets: NotRequired[dict[str, Json]]
    joint: NotRequired[list[Json]]
    joint_draws: NotRequired[dict[str, list[list[float]]]]
    labels: NotRequired[list[str | int | float | bool]]
    classes: NotRequired[list[str | int | float | bool]]
    probabilities: NotRequired[list[list[float]]]
    entropy: NotRequired[dict[Kind, list[float]]]
    draws: NotRequired[list[Any]]
    series: NotRequired[list[str]]
    steps: NotRequired[list[int]]
    times: NotRequired[list[Any]]
    paths: NotRequired[int]
    anomalies: NotRequired[Anomalies]
    reading: NotRequired[Json]
    ignored: NotRequired[list[str]]
    notes: NotRequired[list[str]]
    kept: NotRequired[dict[str, list[Any]]]


class NextToken(TypedDict):
    """A token that may follow, and its probability."""

    token: str
    probability: float


@final
class TextAnswer(TypedDict):
    """Predictions for texts, in the order of the request; entropies of the next token."""

    model: str
    version: int
    prune: float
    samples: int
    seed: int
    sampler: str
    log_likelihood: list[float]
    perplexity: list[float]
    token_log_likelihoods: list[list[float]]
    next_tokens: list[list[NextToken]]
    entropy: dict[Kind, list[float]]
    timings_ms: dict[str, float]


class RollingFeedback(TypedDict):
    """Scores of the newest labelled rows of a version, at most `window` of them."""

    model: str
    version: int
    window: int
    updated_at: str | None
    metrics: Json


class Feedback(TypedDict):
    """The response to feedback: metrics of its rows, and of the window that includes them."""

    id: str
    prediction: str | None
    model: str
    version: int
    rows: int
    metrics: Json
    rolling: RollingFeedback
    reading: NotRequired[Json]  # of a file
    ignored: NotRequired[list[str]]
    notes: NotRequired[list[str]]


WebhookEvent = Literal[
    "job.succeeded",
    "job.failed",
    "job.cancelled",
    "alias.moved",
    "alias.removed",
    "gate.passed",
    "gate.refused",
    "drift.found",
    "coverage.left",
    "coverage.back",
]


class Webhook(TypedDict):
    """A receiver of events; a disabled one is told nothing until it is enabled."""

    id: str
    owner: NotRequired[str]
    url: str
    events: list[WebhookEvent]
    created_at: str
    failing_since: str | None
    disabled_at: str | None
    disabled_reason: str | None


class NewWebhook(Webhook):
    """A new webhook, with the secret that verifies its deliveries."""

    secret: str


class DeliveryTry(TypedDict):
    """One try to send a delivery; without a response, `response_status` is None."""

    time: str
    response_status: int | None
    error: str | None
    seconds: float


class Delivery(TypedDict):
    """An event that a webhook is told of; `id` is the same for all tries and replays."""

    id: str
    webhook: str
    event: WebhookEvent
    subject: str
    status: Literal["pending", "delivered", "failed"]
    attempts: int
    next_attempt_at: str | None
    tries: list[DeliveryTry]
    body: Json
    created_at: str
    finished_at: str | None
