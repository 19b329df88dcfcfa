"""A model card in responses."""

from datetime import datetime

from pydantic import ConfigDict, Field

from app.schemas.common import Json, Response, is_none
from app.schemas.datasets import SourceResponse
from app.schemas.models import (
    BaselineResponse,
    FeatureResponse,
    ImportanceResponse,
    Label,
    SelectionResponse,
    VariantResponse,
)


class CardColumn(Response):
    """A column of the training rows. Its statistics ignore missing values."""

    name: str
    role: str = Field(description="feature or target")
    type: str
    missing: int
    shape: list[int] | None = Field(None, exclude_if=is_none)
    min: float | str | None = Field(None, exclude_if=is_none)
    max: float | str | None = Field(None, exclude_if=is_none)
    mean: float | None = Field(None, exclude_if=is_none)
    std: float | None = Field(None, exclude_if=is_none)
    median: float | None = Field(
        None,
        exclude_if=is_none,
        description="a value that occurs: of two middle ones the lower; older versions have none",
    )
    levels: list[tuple[str, int]] | None = Field(
        None,
        exclude_if=is_none,
        description="the 50 most frequent with their number of rows; all classes of a target",
    )
    num_levels: int | None = Field(None, exclude_if=is_none)


class CardRows(Response):
    """Numbers of rows (or lines of text, or windows of series) in each part of the split."""

    learned: int = Field(description="rows to which the weights were fitted")
    stopping: int | None = Field(
        None, exclude_if=is_none, description="rows that only chose the epoch"
    )
    calibration: int | None = Field(
        None,
        exclude_if=is_none,
        description="rows to which only the calibration was fitted; a refit of series also learns "
        "from these steps, after the first fit was calibrated on them",
    )
    held_out: int = Field(description="rows on which the metrics were computed")
    described: int | None = Field(
        None,
        exclude_if=is_none,
        description="of series: the rows that `columns` describes, all learned steps",
    )
    split: str | Json
    columns: list[CardColumn]


class Setting(Response):
    """A setting of the training job, named by its dotted path."""

    setting: str
    value: object
    given: bool | None = Field(
        description="true: from the request; false: from the recipe; null: imported"
    )


class CardEpoch(Response):
    """Means over the mini-batches of an epoch, in nats per row. At most 200 epochs are kept."""

    epoch: int
    nelbo: float
    nll: float
    kl: float = Field(description="not multiplied by its weight")
    held_out_log_likelihood: float | None


class Cut(Response):
    """The signal-to-noise ratio below which a fraction `prune` of the weights lies."""

    prune: float
    at: float


class SignalToNoise(Response):
    """A histogram of 20 log₁₀ |μ|/σ of the weights, in bins of 1 dB from `first` on."""

    unit: str
    first: int
    counts: list[int]
    cuts: list[Cut]


class CardVariant(VariantResponse):
    """A variant with its scores on held-out rows."""

    model_config = ConfigDict(extra="allow")


class CardDetector(Response):
    """Flags rows as out of distribution if their `score` is above the threshold."""

    prune: float
    score: str
    threshold: float | None
    false_alarm_rate: float = Field(description="share of held-out rows above the threshold")
    rows: int = Field(0, description="held-out rows that give the threshold; 0: not known")


class ClassCurve(Response):
    """The rows whose probability of the class is at least a threshold, from high to low."""

    label: Label
    share: float = Field(description="of the rows are of the class")
    threshold: list[float] = Field(description="100 at most")
    recall: list[float]
    precision: list[float]
    false_positive_rate: list[float]


class HeldOutResponse(Response):
    """Predictions of held-out rows by the full posterior, for charts; empty for other tasks."""

    level: float | None = Field(default=None, exclude_if=is_none, description="of the intervals")
    actual: list[float] | None = Field(
        default=None,
        exclude_if=is_none,
        description="of regressions: true values of at most 300 rows",
    )
    mean: list[float] | None = Field(default=None, exclude_if=is_none)
    lower: list[float] | None = Field(default=None, exclude_if=is_none)
    upper: list[float] | None = Field(default=None, exclude_if=is_none)
    rows: int | None = Field(
        default=None,
        exclude_if=is_none,
        description="of classifications: rows that the curves count",
    )
    curves: list[ClassCurve] | None = Field(
        default=None, exclude_if=is_none, description="of the 20 most frequent classes"
    )


class CardResponse(Response):
    """A model card: the training rows of a version, its settings, its scores and its limits."""

    model: str
    version: int
    aliases: list[str]
    task: str
    target: str
    features: list[FeatureResponse]
    classes: list[Label] | None = Field(None, exclude_if=is_none)
    num_weights: int
    dataset: str
    source: SourceResponse | None = Field(
        None, description="where the rows were read from, and what was read; null: an upload"
    )
    job: str
    created_at: datetime
    rows: CardRows
    recipe: list[Setting]
    learning_curve: list[CardEpoch]
    variants: list[CardVariant]
    baselines: list[BaselineResponse]
    recommended_variant: float
    selection: SelectionResponse
    importance: ImportanceResponse = ImportanceResponse()
    held_out: HeldOutResponse = HeldOutResponse()
    signal_to_noise: SignalToNoise | None
    out_of_distribution: list[CardDetector]
    notes: list[str]
    limits: list[str]
