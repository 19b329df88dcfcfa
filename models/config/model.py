"""The configuration of a model: its columns or text, network, method of inference and training."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Literal

from annotated_types import Interval, Len
from pydantic import AfterValidator, BeforeValidator, Discriminator, Tag

from models.config.methods import BBBConfig, MethodConfig
from models.config.networks import MLPConfig, NetworkConfig
from models.config.ranges import STRICT, ColumnName, Fraction
from models.config.training import OutOfDistributionConfig, TrainingConfig
from models.older_versions import no_student, upgraded_config

Task = Literal["regression", "classification", "forecasting", "language_model"]
FeatureType = Literal["number", "category", "boolean", "datetime", "tensor", "text"]
LikelihoodName = Literal[
    "auto",
    "heteroscedastic",
    "homoscedastic",
    "gaussian",
    "mixture",
    "count",
    "categorical",
    "bernoulli",
]
ShapedKind = Literal["gaussian", "mixture", "count"]
ScaleName = Literal["identity", "log", "power", "logit"]
Bound = Annotated[float, Interval(ge=-1e30, le=1e30)]
Pruning = Annotated[tuple[Fraction, ...], Len(0, 16)]
Steps = Annotated[int, Interval(ge=1, le=1_000)]


def _increasing(seasons: tuple[int, ...]) -> tuple[int, ...]:
    if any(b <= a for a, b in pairwise(seasons)):
        raise ValueError(f"seasons {[*seasons]} must increase, as in [24, 168]")
    return seasons


Seasons = Annotated[tuple[Steps, ...], Len(1, 3), AfterValidator(_increasing)]
Season = Annotated[
    Annotated[Steps, Tag("number")] | Annotated[Seasons, Tag("list")],
    Discriminator(lambda value: "list" if isinstance(value, list | tuple) else "number"),
]


@dataclass(frozen=True, kw_only=True)
class FeatureConfig:
    """One input column and the type that it is read as."""

    __pydantic_config__ = STRICT
    name: ColumnName
    type: FeatureType


@dataclass(frozen=True, kw_only=True)
class LikelihoodConfig:
    """A distribution of numbers on a monotone scale of the target.

    `components` is by default 3 for `mixture` and `count`, and 1 for the others; a mixture has at
    least 2. Without `scale` the one with the best log score of a linear model is used.
    """

    __pydantic_config__ = STRICT
    kind: ShapedKind
    components: Annotated[int, Interval(ge=1, le=5)] | None = None
    scale: ScaleName | None = None


@dataclass(frozen=True, kw_only=True)
class SupportConfig:
    """The possible values of a number target: bounds (included), and whether all are whole.

    What is not given is learned from the rows.
    """

    __pydantic_config__ = STRICT
    lower: Bound | None = None
    upper: Bound | None = None
    integer: bool | None = None


DEFAULT_SHAPE = LikelihoodConfig(kind="mixture", components=3)
GivenLikelihood = Annotated[LikelihoodName | LikelihoodConfig | None, BeforeValidator(no_student)]
Identity = Literal["one_hot", "embedding", "none"]
Transform = Literal["none", "log", "sqrt", "logit", "counts"]


@dataclass(frozen=True, kw_only=True)
class ZonedTime:
    """A time column whose days follow the clock of a time zone, such as "Europe/Berlin".

    Times without an offset from UTC are local times of the zone. `utc` says that they are UTC, or
    have an offset; by default as the file has them. Steps of hours, the hour of the day, the day of
    the week and holidays then agree with the clock.
    """

    __pydantic_config__ = STRICT
    column: ColumnName
    zone: Annotated[str, Len(1, 64)]
    utc: bool | None = None


@dataclass(frozen=True, kw_only=True)
class ForecastConfig:
    """The time column, the key column that separates series, and lengths in time steps.

    `time` is the column's name or, for days that follow the clock of a place, its name and `zone`.
    The network reads windows of `context` steps, each step with those one `season` earlier: several
    seasons, as a day and a week of hours, are a list that increases, [24, 168].
    `transform` is the scale that is forecast: "log" for series whose variation grows with their
    level (values above 0), "sqrt" for values with a lower bound, "logit" between two bounds,
    "counts" for whole numbers with many zeros, "none" for the values themselves.
    `identity` is what the network knows of a series by its key: a slot ("one_hot", of up to 256
    keys), an "embedding" that is learned for each, or "none". `static` are features that never
    change within a series, `past` those that are not known ahead: neither is needed of the steps
    ahead.
    `classics` mixes the network's forecasts with those of exponential smoothing and
    autoregressions, by the log score of forecasts from earlier times.
    `holidays` names the calendar of a country, such as "DE", or of its part, such as "DE-BY".
    """

    __pydantic_config__ = STRICT
    time: ColumnName | ZonedTime | None = None
    key: ColumnName | None = None
    horizon: Steps | None = None
    context: Steps | None = None
    season: Season | None = None
    transform: Transform | None = None
    classics: bool = True
    identity: Identity | None = None
    static: Annotated[tuple[ColumnName, ...], Len(0, 1_000)] | None = None
    past: Annotated[tuple[ColumnName, ...], Len(0, 1_000)] = ()
    holidays: Annotated[str, Len(1, 64)] | None = None

    @property
    def time_column(self) -> str | None:
        return self.time.column if isinstance(self.time, ZonedTime) else self.time

    @property
    def time_name(self) -> str:
        """The name of the time column, which the recipe has filled in."""
        return str(self.time_column)

    @property
    def steps(self) -> int:
        """The horizon; 1 as long as none is chosen."""
        return self.horizon or 1

    @property
    def zone(self) -> str | None:
        """The time zone whose clock the days follow."""
        return self.time.zone if isinstance(self.time, ZonedTime) else None

    @property
    def local_zone(self) -> str | None:
        """The time zone of the times that rows have; None if these are UTC."""
        return None if isinstance(self.time, ZonedTime) and self.time.utc else self.zone

    @property
    def seasons(self) -> tuple[int, ...]:
        """The steps of each season, the shortest first; 1 if there is none or it is not known."""
        return self.season if isinstance(self.season, tuple) else (self.season or 1,)

    @property
    def longest_season(self) -> int:
        return self.seasons[-1]


@dataclass(frozen=True, kw_only=True)
class LanguageConfig:
    """How text is cut into tokens (words between white space, or characters) and windows.

    The vocabulary holds the `max_vocabulary` most frequent tokens that occur at least `min_count`
    times, among them the end of a line and the unknown token. A window has `steps` tokens;
    gradients are truncated at its beginning.
    """

    __pydantic_config__ = STRICT
    level: Literal["word", "character"] = "word"
    max_vocabulary: Annotated[int, Interval(ge=3, le=100_000)] = 10_000
    min_count: Annotated[int, Interval(ge=1, le=1_000_000)] = 1
    steps: Steps | None = None


@dataclass(frozen=True, kw_only=True)
class InputsConfig:
    """What the networks of a table read beside its columns.

    `boosted`: whether some read the predictions of boosted trees. None tries them, and takes them
    if they gain on the rows.
    """

    __pydantic_config__ = STRICT
    boosted: bool | None = None


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Everything but the data that determines a trained model."""

    __pydantic_config__ = STRICT
    target: ColumnName
    features: tuple[FeatureConfig, ...] | None = None
    task: Task | None = None
    support: SupportConfig | None = None
    likelihood: GivenLikelihood = None
    weight: ColumnName | None = None
    inputs: InputsConfig = field(default_factory=InputsConfig)
    network: NetworkConfig = field(default_factory=MLPConfig)
    method: MethodConfig = field(default_factory=BBBConfig)
    members: Annotated[int, Interval(ge=1, le=32)] | None = None  # networks of a mixture
    training: TrainingConfig = field(default_factory=TrainingConfig)
    pruning: Pruning | None = None
    language: LanguageConfig | None = None
    forecast: ForecastConfig | None = None
    out_of_distribution: OutOfDistributionConfig | None = None

    @property
    def series(self) -> ForecastConfig:
        """`forecast`, or its defaults."""
        return self.forecast or ForecastConfig()

    @property
    def has_open_shape(self) -> bool:
        """Whether the race is still to choose the distribution of the target and its scale."""
        return self.likelihood == "auto"

    @property
    def first_likelihood(self) -> LikelihoodName | LikelihoodConfig | None:
        """The likelihood; the default shape until the race has chosen one."""
        return DEFAULT_SHAPE if self.has_open_shape else self.likelihood

    @property
    def columns(self) -> list[str]:
        """The distinct names of the columns that a training reads, the features first."""
        training = self.training
        others = (self.target, self.weight, training.split_column, training.groups)
        key = None if self.forecast is None else self.forecast.key
        names = (*(feature.name for feature in self.features or ()), *others, key)
        return list(dict.fromkeys(name for name in names if name is not None))

    @property
    def false_alarm_rate(self) -> float:
        """The share of rows like those of training that may be flagged."""
        return (self.out_of_distribution or OutOfDistributionConfig()).false_alarm_rate


StoredConfig = Annotated[ModelConfig, BeforeValidator(upgraded_config)]
"""A configuration that this or an earlier release has stored."""
