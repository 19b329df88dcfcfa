"""A model card as HTTP tells it: what a version was trained on and how, how it did, its limits."""

from datetime import datetime

from pydantic import ConfigDict, Field

from app.schemas.common import Json, Response, is_none
from app.schemas.models import FeatureResponse, Label, VariantResponse


class CardColumn(Response):
    """A column in the training rows; statistics ignore missing values."""

    name: str
    role: str = Field(description="feature or target")
    type: str
    missing: int
    shape: list[int] | None = Field(None, exclude_if=is_none)
    min: float | str | None = Field(None, exclude_if=is_none)
    max: float | str | None = Field(None, exclude_if=is_none)
    mean: float | None = Field(None, exclude_if=is_none)
    std: float | None = Field(None, exclude_if=is_none)
    levels: list[tuple[str, int]] | None = Field(
        None,
        exclude_if=is_none,
        description="the 50 most frequent ones, each with its rows; of a target every class",
    )
    num_levels: int | None = Field(None, exclude_if=is_none)


class CardRows(Response):
    """Rows, lines of a text or windows of series, and how they were split."""

    learned: int = Field(description="to which the weights were fitted")
    stopping: int | None = Field(
        None, exclude_if=is_none, description="by which only the epoch was chosen"
    )
    calibration: int | None = Field(
        None, exclude_if=is_none, description="by which only the calibration was fitted"
    )
    held_out: int = Field(description="on which the metrics were computed")
    split: str | Json
    columns: list[CardColumn]


class Setting(Response):
    """A setting of the training job by its dotted path."""

    setting: str
    value: object
    given: bool | None = Field(
        description="true: asked for; false: filled in by the recipe; null: imported"
    )


class CardEpoch(Response):
    """Means over an epoch's mini-batches, in nats per row; at most 200 epochs are kept."""

    epoch: int
    nelbo: float
    nll: float
    kl: float = Field(description="before its weight")
    held_out_log_likelihood: float | None


class Cut(Response):
    """The ratio below which a variant's fraction of the full posterior's weights lies."""

    prune: float
    at: float


class SignalToNoise(Response):
    """Weights per bin of 1 dB of 20 log₁₀ |μ|/σ; the first bin begins at `first`."""

    unit: str
    first: int
    counts: list[int]
    cuts: list[Cut]


class CardVariant(VariantResponse):
    """A variant with its scores on held-out rows."""

    model_config = ConfigDict(extra="allow")


class CardDetector(Response):
    """Rows whose `score` is above the threshold are called out of distribution."""

    prune: float
    score: str
    threshold: float | None
    false_alarm_rate: float = Field(description="share of held-out rows that are above it")


class CardResponse(Response):
    """A model card: what a version was trained on and how, how it did, its limits."""

    model: str
    version: int
    aliases: list[str]
    task: str
    target: str
    features: list[FeatureResponse]
    classes: list[Label] | None = Field(None, exclude_if=is_none)
    num_weights: int
    dataset: str
    job: str
    created_at: datetime
    rows: CardRows
    recipe: list[Setting]
    learning_curve: list[CardEpoch]
    variants: list[CardVariant]
    signal_to_noise: SignalToNoise | None
    out_of_distribution: list[CardDetector]
    limits: list[str]
