"""Calibration: scales and intervals from rows that no weight was fitted to.

A variance scale or a temperature is one number, so a few rows are enough to fit it (Guo et al.
2017, arXiv 1706.04599). Conformal intervals contain a new row's target with the wanted probability
for any model (Vovk, Gammerman, Shafer 2005, §2.2; Lei et al. 2018, arXiv 1604.04173, §5.2 for
residuals in units of a predicted deviation). Those of targets with a shape lie between quantiles of
the predicted distribution, so that they keep its support and skew (Chernozhukov, Wüthrich and Zhu
2021, arXiv 1909.07889).

The order statistics that bound new scores: `models.evaluation.conformal_rank`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from models.config import Json
from models.config.ranges import Count, NotNegative, Positive, Probability
from models.evaluation.adaptive import Reference
from models.evaluation.cells import Cells, fit_cells, fit_sizes
from models.evaluation.class_sets import LabelledClasses, SetCalibration, fit_sets
from models.evaluation.conformal_rank import MAX_RESIDUALS, order_statistics, score_at
from models.prediction.number_mixture import NumberMixture
from models.prediction.predictive import CategoricalMixture, Mixture

# The prior of log c and log T is N(0, ½²): two thirds of its mass are within a factor of 1.65. For
# a Gaussian's variance it weighs as much as eight rows (n rows determine log c with precision n/2).
# It shrinks log c by 30 % with 19 rows, by 4 % with 199 rows.
PENALTY_SCALE = 0.5
_BOUND = 10.0  # of |log c|, far above that of any useful fit
_TOLERANCE = 1e-5  # of log c, a thousandth of its standard error from 20,000 rows


@dataclass(frozen=True)
class LabelledMixture:
    """The predictive mixture of some rows, their targets in the target's units, their weights.

    `start` is the first row's number among all rows.

    Args:
        groups: the number of each row's group; −1 if it is unknown. None without groups.
        only_groups: whether the rows are there for their groups' quantiles alone: more rows of
            groups that have few among evenly spread rows.
    """

    mixture: Mixture
    targets: Shaped[Tensor, "rows"]
    weights: Float[Tensor, "rows"] | None
    start: int = 0
    groups: Int[Tensor, "rows"] | None = None
    only_groups: bool = False

    def log_likelihood(self, mixture: Mixture) -> float:
        """Σ w_i log p(y_i); a row of weight 2 counts as two rows."""
        log_prob = mixture.log_prob(self.targets)
        return float((log_prob if self.weights is None else log_prob * self.weights).sum())


Bounds = tuple[Float[Tensor, "rows"], Float[Tensor, "rows"]]
Groups = Int[Tensor, "rows"] | None


class ScalesVariance:
    """A calibration of numbers that multiplies all variances by one factor."""

    variance_scale: float
    rows: int
    cells: Cells | None
    has_intervals: ClassVar[bool] = True  # conformal ones

    def apply(self, mixture: Mixture) -> NumberMixture:
        """Multiply deviations on the target's scale by √c; probabilities of atoms stay the same."""
        assert isinstance(mixture, NumberMixture)
        return mixture.scaled(self.variance_scale)

    def describe(self) -> Json:
        described = {"variance_scale": self.variance_scale, "rows": self.rows}
        if self.cells is None:
            return described
        kind = "size" if self.cells.edges else "group"
        return described | {"conditional_on": kind, "rows_by_cell": list(self.cells.rows)}

    def _in_cells(
        self,
        means: Float[Tensor, "rows"],
        groups: Groups,
        bounds: Sequence[float],
        levels: Sequence[float],
    ) -> Float[Tensor, "levels rows"]:
        """The bound on each row's score, of each level.

        Args:
            bounds: of each level, for all rows.
        """
        if self.cells is None:
            return means.new_tensor(bounds).unsqueeze(1).expand(-1, len(means))
        pairs = zip(levels, bounds, strict=True)
        each = [[*self.cells.quantiles(level, bound), bound] for level, bound in pairs]
        return means.new_tensor(each)[:, self.cells.of(means, groups)]  # −1 is the last one


@dataclass(frozen=True)
class NumberCalibration(ScalesVariance):
    """A factor on all variances, and the residuals that give conformal intervals their widths.

    Args:
        residuals: |y − mean| ÷ calibrated total standard deviation, in increasing order; of many
            rows only evenly spread order statistics.
        rows: number of calibration rows.
        weights: of the residuals; () if each is 1.
        cells: the residuals by group or size, for quantiles of their own.
    """

    variance_scale: Positive
    residuals: Annotated[tuple[NotNegative, ...], Len(0, MAX_RESIDUALS)]
    rows: Count
    weights: Annotated[tuple[Positive, ...], Len(0, MAX_RESIDUALS)] = ()
    cells: Cells | None = None

    def half_width(self, level: float) -> float:
        """Half the width of a conformal interval, in predictive standard deviations.

        It is the ⌈(n + 1) · level⌉-th smallest of n residuals, infinite if n is too small. For rows
        exchangeable with the calibration rows the interval contains the target with a probability
        of `level` or more. With weights n is their sum.
        """
        return score_at(self.residuals, self.weights, level, math.inf)

    def intervals(
        self, mixture: NumberMixture, levels: Sequence[float], groups: Groups = None
    ) -> list[Bounds]:
        """The conformal interval of each level; `mixture` is calibrated.

        Args:
            groups: the number of each row's group; −1 or None if it is unknown.
        """
        return self.intervals_about(mixture.mean(), mixture.total().sqrt(), levels, groups)

    def intervals_about(
        self,
        mean: Float[Tensor, "rows"],
        deviation: Float[Tensor, "rows"],
        levels: Sequence[float],
        groups: Groups = None,
    ) -> list[Bounds]:
        """`intervals`, given the calibrated mean and total standard deviation."""
        alike = [*map(self.half_width, levels)]
        bounds = alike if self.cells is None else self._in_cells(mean, groups, alike, levels)
        return [(mean - half * deviation, mean + half * deviation) for half in bounds]

    def score(self, level: float) -> float:
        """The largest residual that a conformal interval contains."""
        return self.half_width(level)

    def scores(
        self, mixture: NumberMixture, targets: Float[Tensor, "rows"], start: int = 0
    ) -> Float[Tensor, "rows"]:
        """The residual of each target."""
        return residuals(mixture, targets, start)

    def within(self, mixture: NumberMixture, scores: Sequence[float]) -> list[Bounds]:
        """The intervals that contain targets with at most these residuals."""
        return self.within_about(mixture.mean(), mixture.total().sqrt(), scores)

    def within_about(
        self,
        mean: Float[Tensor, "rows"],
        deviation: Float[Tensor, "rows"],
        scores: Sequence[float],
    ) -> list[Bounds]:
        """`within`, given the calibrated mean and total standard deviation."""
        halves = [score * deviation for score in scores]
        return [(mean - half, mean + half) for half in halves]

    def reference(self) -> Reference:
        """The residuals, which those of labelled rows join."""
        return _reference(self.residuals, self.weights)


@dataclass(frozen=True)
class ShapeCalibration(ScalesVariance):
    """A factor on variances on the target's scale, and the conformity of calibration rows.

    Args:
        conformity: |2F(y) − 1| under the calibrated distributions, in increasing order; of many
            rows only evenly spread order statistics.
        rows: number of calibration rows.
        weights: of the conformities; () if each is 1.
        cells: the conformities by group or size, for quantiles of their own.
    """

    variance_scale: Positive
    conformity: Annotated[tuple[Probability, ...], Len(0, MAX_RESIDUALS)]
    rows: Count
    weights: Annotated[tuple[Positive, ...], Len(0, MAX_RESIDUALS)] = ()
    cells: Cells | None = None

    def probability(self, level: float) -> float:
        """The probability of the central interval that is the conformal one.

        It is the ⌈(n + 1) · level⌉-th smallest of n conformities, 1 if n is too small: then the
        interval is the whole support. For rows exchangeable with the calibration rows the interval
        contains the target with a probability of `level` or more. With weights n is their sum.
        """
        return score_at(self.conformity, self.weights, level, 1.0)

    def intervals(
        self, mixture: NumberMixture, levels: Sequence[float], groups: Groups = None
    ) -> list[Bounds]:
        """The conformal interval of each level; `mixture` is calibrated.

        Args:
            groups: the number of each row's group; −1 or None if it is unknown.
        """
        return in_pairs(mixture.quantiles_at(self.tails(mixture, levels, groups)))

    def tails(
        self, mixture: NumberMixture, levels: Sequence[float], groups: Groups = None
    ) -> Float[Tensor, "ends rows"]:
        """The probabilities below all lower ends, then those below all upper ends."""
        return self.tails_about(mixture.mean(), levels, groups)

    def tails_about(
        self, mean: Float[Tensor, "rows"], levels: Sequence[float], groups: Groups = None
    ) -> Float[Tensor, "ends rows"]:
        """`tails`, given the calibrated mean."""
        probabilities = [*map(self.probability, levels)]
        tails = 0.5 * (1 - self._in_cells(mean, groups, probabilities, levels))
        return torch.cat([tails, 1 - tails])

    def score(self, level: float) -> float:
        """The largest conformity that a conformal interval contains."""
        return self.probability(level)

    def scores(
        self, mixture: NumberMixture, targets: Float[Tensor, "rows"], start: int = 0
    ) -> Float[Tensor, "rows"]:
        """The conformity of each target."""
        return conformity(mixture, targets, start)

    def within(self, mixture: NumberMixture, scores: Sequence[float]) -> list[Bounds]:
        """The intervals that contain targets with at most these conformities."""
        return in_pairs(mixture.quantiles(self.tails_within(scores)))

    @staticmethod
    def tails_within(scores: Sequence[float]) -> list[float]:
        """The probabilities below the ends of `within`, in the order of `tails`."""
        tails = [0.5 * (1 - min(score, 1.0)) for score in scores]
        return [*tails, *(1 - tail for tail in tails)]

    def reference(self) -> Reference:
        """The conformities, which those of labelled rows join."""
        return _reference(self.conformity, self.weights)


def in_pairs(ends: Float[Tensor, "ends rows"]) -> list[Bounds]:
    """Intervals from all lower ends, which the upper ends follow."""
    return list(zip(*ends.chunk(2), strict=True)) if len(ends) else []


def _reference(scores: Sequence[float], weights: Sequence[float]) -> Reference:
    return Reference(np.asarray(scores, float), np.asarray(weights or np.ones(len(scores)), float))


@dataclass(frozen=True)
class ClassCalibration:
    """A temperature T: logits are divided by it, and probabilities are proportional to p^(1/T).

    Args:
        rows: to which T was fitted.
        sets: the scores of conformal sets; None in versions of before there were any.
    """

    temperature: Positive
    rows: Count
    sets: SetCalibration | None = None
    has_intervals: ClassVar[bool] = False

    def reference(self) -> None:
        """None: classes have no conformal intervals."""

    def apply(self, mixture: Mixture) -> CategoricalMixture:
        assert isinstance(mixture, CategoricalMixture)
        return mixture.tempered(self.temperature)

    def describe(self) -> Json:
        described: Json = {"temperature": self.temperature, "rows": self.rows}
        return described if self.sets is None else described | {"sets": self.sets.describe()}


AnyNumberCalibration = NumberCalibration | ShapeCalibration
Calibration = AnyNumberCalibration | ClassCalibration


def fit_calibration(
    some: Sequence[LabelledMixture],
    rows: Iterable[LabelledMixture],
    *,
    shaped: bool = False,
    groups: int = 0,
) -> Calibration:
    """Fit the scale to some rows, and rank the residuals, conformities or sets of all rows.

    With groups each has quantiles of its own. Without them low, middle and high predictions have,
    if one quantile does not cover them alike (`models.evaluation.cells`).

    Args:
        some: rows whose mixtures are in memory together.
        rows: all rows, read once.
        shaped: whether conformal intervals lie between quantiles.
        groups: the number of groups; 0 without them.
    """
    scale = fit_scale(some)
    if isinstance(some[0].mixture, CategoricalMixture):
        sets = fit_sets(_probabilities(rows, scale))
        return ClassCalibration(scale, sum(len(one.targets) for one in some), sets)
    score = conformity if shaped else residuals
    every = [(one.only_groups, _Scored.of(one, scale, score)) for one in rows]
    common = _Scored.joined([found for only_groups, found in every if not only_groups])
    kept, weights = order_statistics(common.scores, common.weights)
    if groups:
        whole = _Scored.joined([found for _, found in every])
        assert whole.groups is not None
        cells: Cells | None = fit_cells(whole.scores, whole.groups, groups, whole.weights)
    else:
        cells = fit_sizes(common.scores, common.means, common.weights)
    kind = ShapeCalibration if shaped else NumberCalibration
    return kind(scale, kept, len(common.scores), weights, cells)


@dataclass(frozen=True)
class _Scored:
    """The scores of some calibration rows, and what says which cell each is in."""

    scores: Float[Tensor, "rows"]
    means: Float[Tensor, "rows"]
    weights: Float[Tensor, "rows"] | None
    groups: Groups

    @classmethod
    def of(cls, one: LabelledMixture, scale: float, score: Callable[..., Tensor]) -> "_Scored":
        assert isinstance(one.mixture, NumberMixture)
        mixture = one.mixture.scaled(scale)
        scores = score(mixture, one.targets, one.start)
        return cls(scores, mixture.mean(), one.weights, one.groups)

    @classmethod
    def joined(cls, parts: Sequence["_Scored"]) -> "_Scored":
        columns = {f.name: [getattr(part, f.name) for part in parts] for f in fields(cls)}
        joined: dict[str, Any] = {
            name: None if each[0] is None else torch.cat(each) for name, each in columns.items()
        }
        return cls(**joined)


def _probabilities(
    rows: Iterable[LabelledMixture], temperature: float
) -> Iterator[LabelledClasses]:
    for one in rows:
        assert isinstance(one.mixture, CategoricalMixture)
        probabilities = one.mixture.tempered(temperature).mean()
        yield LabelledClasses(probabilities, one.targets, one.weights)


def fit_scale(labelled: Sequence[LabelledMixture]) -> float:
    """The most probable c or T given the rows' targets; the prior draws it a little towards 1."""
    from scipy.optimize import minimize_scalar  # noqa: PLC0415 - predictions do without

    def loss(log_scale: float) -> float:
        scale = math.exp(log_scale)
        fit = sum(one.log_likelihood(_scaled(one.mixture, scale)) for one in labelled)
        return 0.5 * (log_scale / PENALTY_SCALE) ** 2 - fit

    options = {"xatol": _TOLERANCE}  # one Gaussian or softmax has only one minimum
    found = minimize_scalar(loss, bounds=(-_BOUND, _BOUND), method="bounded", options=options)
    return math.exp(found.x)


def _scaled(mixture: Mixture, scale: float) -> Mixture:
    if isinstance(mixture, NumberMixture):
        return mixture.scaled(scale)
    return mixture.tempered(scale)


def residuals(
    mixture: NumberMixture, targets: Float[Tensor, "rows"], start: int = 0
) -> Float[Tensor, "rows"]:
    """|y − mean| ÷ total standard deviation, of a calibrated mixture."""
    return (targets - mixture.mean()).abs() / mixture.total().sqrt()


def conformity(
    mixture: NumberMixture, targets: Float[Tensor, "rows"], start: int = 0
) -> Float[Tensor, "rows"]:
    """|2F(y) − 1| of a calibrated mixture, randomised where values have a probability.

    Without the randomisation the intervals of whole numbers would be narrower, as their ends have
    probability. They would cover the level on average, but too little where numbers are large.
    """
    return (2 * mixture.pit(targets, start) - 1).abs().clamp(max=1)
