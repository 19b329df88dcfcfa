"""The optimiser's settings and the rows that are held out."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from annotated_types import Interval, Len
from pydantic import BeforeValidator

from models.config.ranges import STRICT, ColumnName
from models.older_versions import no_plateau

T = TypeVar("T")

FALSE_ALARMS = 0.01  # one row in a hundred: rare enough that a person can look at each


@dataclass(frozen=True, kw_only=True)
class SplitBy:
    """Rows with equal values in the column `by` stay on the same side of the split."""

    __pydantic_config__ = STRICT
    by: ColumnName


@dataclass(frozen=True, kw_only=True)
class SplitTime:
    """The latest rows, ordered by the column `time`, are held out."""

    __pydantic_config__ = STRICT
    time: ColumnName


Precision = Literal["auto", "float32", "bfloat16"]
Effort = Literal["quick", "standard", "thorough"]
Split = Literal["random", "last"] | SplitBy | SplitTime
"""`last` holds out the last rows as stored, or the last lines of a language model's text."""


@dataclass(frozen=True, kw_only=True)
class OutOfDistributionConfig:
    """The share of in-distribution rows that may be flagged as out of distribution."""

    __pydantic_config__ = STRICT
    false_alarm_rate: Annotated[float, Interval(gt=0.0, le=0.5)] = FALSE_ALARMS


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """The optimiser's settings and the rows that are held out.

    Three disjoint sets of a table's rows are held out: `stopping_fraction` to choose the epoch,
    `calibration_fraction` to calibrate (0: no calibration), `validation_fraction` for the metrics.
    `refit` fits the weights again with the rows of the first set included. Of series the sets are
    steps in the order of time, and a refit also learns from those that calibrated the first fit.

    With `folds` no set is held out for the epoch and for calibration: the members of the network
    leave out one fold each, and predict its rows. `effort` says how much the recipe tries.

    `groups` names a column, such as a region: conformal intervals are right in each of its groups.

    `class_weight` "balanced" lets each class count the same in training, however rare it is.

    The learning rate rises over the first `warmup_steps`. With `averaging_steps` the exponential
    average of the weights over so many steps is scored and kept.

    `precision` is the format of the products of fits. "auto" is mixed precision, with products of
    bfloat16 numbers, on a GPU that has units for it and for layers of 65,536 weights and batches of
    64 rows and more, and float32 elsewhere. Parameters, likelihood and KL are in float32 always,
    and so are chains, SWAG's iterates and the curvature of a Laplace approximation.

    `background` encoded training rows are stored with the model, to explain its predictions; with
    fewer than 16 it explains none.
    """

    __pydantic_config__ = STRICT
    effort: Effort | None = None
    folds: Annotated[int, Interval(ge=2, le=20)] | None = None
    epochs: Annotated[int, Interval(ge=1, le=100_000)] | None = None
    batch_size: Annotated[int, Interval(ge=1, le=65_536)] | None = None
    optimizer: Literal["adam", "sgd"] | None = None
    learning_rate: Annotated[float, Interval(gt=0.0, le=100.0)] | None = None
    schedule: Annotated[Literal["cosine", "constant"], BeforeValidator(no_plateau)] | None = None
    momentum: Annotated[float, Interval(ge=0.0, lt=1.0)] = 0.9
    warmup_steps: Annotated[int, Interval(ge=0, le=100_000)] = 0
    averaging_steps: Annotated[int, Interval(ge=1, le=100_000)] | None = None
    gradient_clip: Annotated[float, Interval(gt=0.0, le=1e6)] | None = None
    validation_fraction: Annotated[float, Interval(gt=0.0, le=0.5)] = 0.1
    calibration_fraction: Annotated[float, Interval(ge=0.0, le=0.5)] | None = None
    stopping_fraction: Annotated[float, Interval(ge=0.0, le=0.5)] | None = None
    split: Split = "random"
    groups: ColumnName | None = None
    class_weight: Literal["none", "balanced"] = "none"
    patience: Annotated[int, Interval(ge=1, le=100_000)] | None = None
    fine_tune_epochs: Annotated[int, Interval(ge=0, le=10_000)] | None = None
    refit: bool | None = None
    seed: Annotated[int, Interval(ge=0, le=2**31 - 1)] = 0
    device: Annotated[str, Len(1, 16)] = "auto"
    precision: Precision = "auto"
    background: Annotated[int, Interval(ge=0, le=256)] = 64  # means err by 1/8 of a deviation

    @property
    def split_column(self) -> str | None:
        """The column of a split by group or time."""
        match self.split:
            case SplitBy(by=name) | SplitTime(time=name):
                return name
        return None


def required(value: T | None, name: str) -> T:
    """A setting that `models.training.recipe.resolve` fills in."""
    if value is None:
        raise ValueError(f"{name} is not set; call models.training.recipe.resolve first")
    return value
