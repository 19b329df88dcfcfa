"""The options of a prediction, each defined once: its range, default and meaning.

The ranges are ``annotated_types`` metadata, as in `models.config`. Requests and job specifications
inherit from these records, so that pydantic checks the ranges and OpenAPI shows them.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from annotated_types import Interval, Len
from pydantic import ConfigDict, Field

from models.evaluation.adaptive import Adapted

Sampler = Literal["sobol", "monte_carlo", "moments"]
SamplerChoice = Literal["auto", "sobol", "monte_carlo", "moments"]
IntervalKind = Literal["credible", "conformal", "adaptive"]
KINDS: tuple[IntervalKind, ...] = ("credible", "conformal", "adaptive")  # as in a response
DEFAULT_KINDS = KINDS[:2]

Samples = Annotated[
    int,
    Interval(ge=1),
    Field(description="weight draws per row, at most CREDENCE_MAX_SAMPLES"),
]
DEFAULT_SAMPLES = 100  # where the sampler, but not their number is given, or none was measured
Seed = Annotated[int, Interval(ge=0, le=2**31 - 1)]
Prune = Annotated[
    float, Interval(ge=0.0, lt=1.0), Field(description="pruned share of a stored variant's weights")
]
Level = Annotated[float, Interval(gt=0.0, lt=1.0)]
MAX_POINTS = 512  # of a density

Horizon = Annotated[
    Annotated[int, Interval(ge=1, le=1_000)] | None,
    Field(description="forecasting only: steps ahead; default: as trained"),
]


@dataclass(frozen=True)
class Density:
    """The predicted density of a number on a grid that suits each row."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    points: Annotated[int, Interval(ge=2, le=MAX_POINTS)] = 64


MAX_ACTIONS = 100  # each is a product with every sample's probabilities


CostsOfAction = Annotated[tuple[float, ...], Len(1, 1000)]  # one per class


@dataclass(frozen=True)
class Costs:
    """What errors cost: `matrix` for classes, `over` and `under` for numbers.

    Args:
        matrix: a row for each action, a column for each class, in the order of `classes`; a
            negative cost is a gain.
        actions: a name for each row of the matrix. Without names the actions of a square matrix
            are the classes, those of another one the numbers of its rows, from 0.
        over: the cost of each unit by which the action is above the truth.
        under: the cost of each unit by which it is below.
        abstain: the cost of asking a person instead.

    Raises:
        ValueError: the costs contradict each other, or lack one that the others need.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", allow_inf_nan=False)

    matrix: Annotated[tuple[CostsOfAction, ...], Len(1, MAX_ACTIONS)] | None = None
    actions: tuple[Annotated[str, Len(1, 200)], ...] | None = None
    over: Annotated[float, Interval(ge=0.0)] | None = None
    under: Annotated[float, Interval(ge=0.0)] | None = None
    abstain: Annotated[float, Interval(ge=0.0)] | None = None

    def __post_init__(self) -> None:
        numbers = self.over is not None or self.under is not None
        if (self.matrix is not None) == numbers:
            raise ValueError("give either a matrix, for classes, or over and under, for numbers")
        if self.matrix is None:
            self._check_numbers()
        else:
            self._check_matrix(self.matrix)

    def _check_numbers(self) -> None:
        if self.actions is not None:
            raise ValueError("actions name the rows of a matrix: give one, or leave actions out")
        if self.over is None or self.under is None:
            raise ValueError("give both over and under")
        if self.over == self.under == 0:
            raise ValueError("over and under are both 0: one must cost something")

    def _check_matrix(self, matrix: tuple[tuple[float, ...], ...]) -> None:
        widths = [len(row) for row in matrix]
        if len(set(widths)) > 1:
            raise ValueError(f"the rows of the matrix have {widths} costs: give each as many")
        names = self.actions
        if names is not None and len(names) != len(matrix):
            raise ValueError(f"{len(names)} actions for {len(matrix)} rows: name each row once")
        if names is not None and len(set(names)) < len(names):
            raise ValueError(f"the actions {', '.join(names)} are not all different")


MAX_GROUPED = 16  # columns whose values group series
MAX_GROUPS = 1_000

Group = Annotated[tuple[str, ...], Len(1, 100_000)]  # keys of series


@dataclass(frozen=True)
class Totals:
    """Sums of a forecast from its first step to each step.

    Args:
        exceeds: thresholds of the sums, such as the stock.
        series: also the sum over all series of the request, of each step and up to each step.
        groups: also the sums over groups of series: names of columns whose values group them, or
            lists of series by the name of their group. The sum over all series comes with them.
        reconcile: a group with the name of a series is what this series sums up. The draws of such
            a series and of those that it sums up are projected so that they agree.

    Raises:
        ValueError: there is nothing to reconcile.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", allow_inf_nan=False)
    exceeds: Annotated[tuple[float, ...], Len(0, 16)] = ()
    series: bool = False
    groups: Annotated[
        Annotated[dict[Annotated[str, Len(1, 1_000)], Group], Len(1, MAX_GROUPS)]
        | Annotated[tuple[str, ...], Len(1, MAX_GROUPED)]
        | None,
        Field(
            description="names of columns whose values group the series, such as `region`, or an "
            "object: the keys of the series of each group, by the group's name",
            examples=[["region"], {"north": ["shop 1", "shop 2"], "south": ["shop 3"]}],
        ),
    ] = field(default=None, hash=False)
    reconcile: Annotated[
        bool,
        Field(
            description="a group with the name of a series is what this series sums up: its "
            "forecast and those of its members are made to agree; each gives way in proportion to "
            "its variance"
        ),
    ] = False

    def __post_init__(self) -> None:
        if self.reconcile and not isinstance(self.groups, dict):
            raise ValueError(
                "reconcile needs groups as an object: the name of a series that is a sum, and the "
                "series that it sums up"
            )

    @property
    def over_series(self) -> bool:
        """Whether series are summed, so that all of them are needed at once."""
        return self.series or self.groups is not None


# What requests of one batch need not have in common: it has the intervals of all of them.
_JOINED = ("samples", "intervals", "interval_kinds", "abstain_above")


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """Options for some rows or for a whole data set. None means that the model chooses."""

    samples: Annotated[
        Samples | None,
        Field(
            description="default: as many as the `auto` sampler needs; 100 with another sampler",
        ),
    ] = None
    seed: Annotated[
        Seed | None,
        Field(
            description="default: the version's own, so that equal requests get equal answers",
        ),
    ] = None
    prune: Prune = 0.0
    intervals: Annotated[tuple[Level, ...], Len(0, 16)] = (0.9,)
    interval_kinds: Annotated[
        tuple[IntervalKind, ...],
        Len(1, 3),
        Field(
            description="credible: quantiles of the predictive mixture; conformal, for calibrated "
            "versions: they contain the target with probability `level` for rows like the "
            "calibration rows, if `samples` is 100 or more; adaptive, only on request: conformal "
            "ones at a level that follows the labels sent to `/feedback`, so that their "
            "coverage stays near `level` when rows change",
        ),
    ] = DEFAULT_KINDS
    sampler: Annotated[
        SamplerChoice | None,
        Field(
            description="auto, the default without `samples`: the way that costs least of those "
            "that training measured to be at least as exact as 100 independent samples, in means, "
            "variances and quantiles; `sampler` and `samples` of the response name it. With "
            "`samples`, draws or a target of the error: the best sampler that the model has",
        ),
    ] = None
    abstain_above: Annotated[
        Annotated[float, Interval(ge=0.0)] | None,
        Field(
            description="mark rows with a greater uncertainty in `abstained`: for numbers the "
            "total standard deviation in units of the target, for classes the entropy in nats",
        ),
    ] = None
    return_mc_errors: Annotated[
        bool,
        Field(
            description="add `mc_errors`: the standard error of every output from finite sampling, "
            "as `mc_error` is that of the mean",
        ),
    ] = False
    exceeds: Annotated[
        tuple[float, ...],
        Len(0, 16),
        Field(
            description="thresholds in units of the target: the probability that the target is "
            "strictly above each"
        ),
    ] = ()
    set_level: Annotated[
        Level | None,
        Field(
            description="classification only: the smallest sets of classes that contain the true "
            "one with this probability, in `sets`; `interval_kinds` says which kinds",
        ),
    ] = None
    quantiles: Annotated[
        tuple[Level, ...],
        Len(0, 99),
        Field(description="probabilities: the quantile of the target at each"),
    ] = ()
    density: Annotated[
        Density | None,
        Field(description="the predictive density of each row at so many values (`points`)"),
    ] = None
    explain: Annotated[
        bool,
        Field(
            description="add `contributions`: what each feature contributes to the mean (for "
            "classes to the probabilities) and to the aleatoric and epistemic uncertainty; a row "
            "then takes the work of several hundred rows",
        ),
    ] = False

    costs: Annotated[
        Costs | None,
        Field(
            description="what errors cost: the action with the least expected cost, in `decisions`",
        ),
    ] = None

    totals: Annotated[
        Totals | None,
        Field(
            description="forecasting only: the sum from the first step to each step, in `totals`; "
            "`intervals` and `quantiles` apply, and `exceeds` has thresholds of the sums: the "
            "probability that demand until a step is above the stock",
        ),
    ] = None
    horizon: Horizon = None
    anomalies: Annotated[
        Annotated[int, Interval(ge=1, le=1_000)] | None,
        Field(
            description="forecasting only: score so many of the newest values of each history, "
            "each against its prediction from the values before it, in `anomalies`",
        ),
    ] = None

    @property
    def shared(self) -> tuple[Any, ...]:
        """What requests have in common that share a batch: all options that it cannot join."""
        kinds = None if self.set_level is None else self.interval_kinds  # sets have kinds, too
        return (kinds, *(getattr(self, f.name) for f in fields(self) if f.name not in _JOINED))


@dataclass(frozen=True, kw_only=True)
class PredictOptions(BatchOptions):
    """Options of a prediction for some rows."""

    return_draws: bool = False
    target_mc_error: Annotated[
        Annotated[float, Interval(gt=0.0)] | None,
        Field(
            description="stop sampling once the Monte-Carlo error of mean, median and bounds of "
            "intervals, or of the probabilities, is below it for every row; `samples` is then the "
            "maximum",
        ),
    ] = None
    top: Annotated[
        Annotated[int, Interval(ge=1, le=100)] | None,
        Field(description="language models: how many next tokens are returned; default 10"),
    ] = None


class Sampling(NamedTuple):
    """How a network's outputs are sampled: a row's outputs follow from nothing else."""

    sampler: Sampler
    seed: int
    samples: int


@dataclass(frozen=True, kw_only=True)
class ResolvedOptions(PredictOptions):
    """Options that a model has checked, with its defaults filled in (`TrainedModel.resolve`).

    `target_mc_error` and `abstain_above` stay None if they were not given. Models of rows ignore
    `horizon` and `top`. `adapted` has the levels of adaptive intervals; without labels it is empty.
    """

    samples: int = DEFAULT_SAMPLES
    seed: int = field()
    sampler: Sampler = field()
    top: int = field()
    horizon: int = field()
    adapted: tuple[Adapted, ...] = ()

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.sampler, self.seed, self.samples)

    def with_samples(self, samples: int) -> "ResolvedOptions":
        """These options with another number of samples."""
        return self if samples == self.samples else replace(self, samples=samples)

    @classmethod
    def of(cls, options: BatchOptions, **resolved: Any) -> "ResolvedOptions":
        """A copy of the options with the resolved ones replaced.

        Without a number of samples it is `DEFAULT_SAMPLES`.
        """
        given = {f.name: getattr(options, f.name) for f in fields(options)}
        given["samples"] = options.samples or DEFAULT_SAMPLES
        return cls(**given | resolved)
