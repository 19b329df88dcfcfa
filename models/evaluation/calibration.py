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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from annotated_types import Len
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from models.config import Json
from models.config.ranges import Count, NotNegative, Positive, Probability
from models.evaluation.cells import By, Cells, fit_cells, fit_thirds
from models.evaluation.class_sets import SetCalibration, fit_sets
from models.evaluation.conformal_rank import MAX_RESIDUALS, RanksScores, order_statistics
from models.evaluation.weighting import PerRow, filled
from models.likelihoods.class_mixture import CategoricalMixture, Mixture
from models.likelihoods.number_mixture import Ends, NumberMixture, chosen, interval_tails

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
        return float((log_prob * filled(self.weights, log_prob)).sum())


Bounds = tuple[PerRow, PerRow]
Groups = Int[Tensor, "rows"] | None


class ScalesVariance(RanksScores):
    """A calibration of numbers: a factor on all variances, and the scores of calibration rows.

    Its conformal intervals contain the targets with at most some score. For rows exchangeable with
    the calibration rows that of a level contains the target with a probability of `level` or more.

    Args:
        rows: number of calibration rows.
        cells: their scores by group or size, for quantiles of their own.
    """

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
        kind = self.cells.by if self.cells.edges else "group"
        return described | {"conditional_on": kind, "rows_by_cell": list(self.cells.rows)}

    def bounds(
        self, means: PerRow, variances: PerRow, levels: Sequence[float], groups: Groups = None
    ) -> Sequence[float] | Float[Tensor, "levels rows"]:
        """The largest score that the conformal interval of each level and row contains.

        Without cells it is a number for all rows, which is faster for a single row.

        Args:
            means: of the calibrated predictions.
            variances: their total variances.
            groups: the number of each row's group; −1 or None if it is unknown.
        """
        alike = [self.score(level) for level in levels]
        if self.cells is None:
            return alike
        pairs = zip(levels, alike, strict=True)
        each = [[*self.cells.quantiles(level, bound), bound] for level, bound in pairs]
        cells = self.cells.of(means, variances, groups)
        return means.new_tensor(each)[:, cells]  # −1 is the last one


@dataclass(frozen=True)
class NumberCalibration(ScalesVariance):
    """Intervals about the mean, with a width in predicted deviations.

    Args:
        residuals: |y − mean| ÷ calibrated total standard deviation, in increasing order.
    """

    variance_scale: Positive
    residuals: Annotated[tuple[NotNegative, ...], Len(0, MAX_RESIDUALS)]
    rows: Count
    weights: Annotated[tuple[Positive, ...], Len(0, MAX_RESIDUALS)] = ()
    cells: Cells | None = None

    @property
    def ranked(self) -> tuple[float, ...]:
        return self.residuals

    @staticmethod
    def scores(mixture: NumberMixture, targets: PerRow, start: int = 0) -> PerRow:
        """|y − mean| ÷ total standard deviation, of a calibrated mixture."""
        return (targets - mixture.mean()).abs() / mixture.total().sqrt()

    def intervals(
        self, mixture: NumberMixture, levels: Sequence[float], groups: Groups = None
    ) -> list[Bounds]:
        """The conformal interval of each level; `mixture` is calibrated."""
        bounds = self.bounds(mixture.mean(), mixture.total(), levels, groups)
        return self.within(mixture, bounds)

    def within(self, mixture: NumberMixture, scores: Iterable[float | PerRow]) -> list[Bounds]:
        """The intervals that contain targets with at most these residuals."""
        return about(mixture.mean(), mixture.total().sqrt(), scores)


@dataclass(frozen=True)
class ShapeCalibration(ScalesVariance):
    """Intervals between quantiles of the predicted distribution.

    Args:
        conformity: |2F(y) − 1| under the calibrated distributions, in increasing order. If the rows
            are too few for a level, the interval is the whole support.
    """

    variance_scale: Positive
    conformity: Annotated[tuple[Probability, ...], Len(0, MAX_RESIDUALS)]
    rows: Count
    weights: Annotated[tuple[Positive, ...], Len(0, MAX_RESIDUALS)] = ()
    cells: Cells | None = None
    beyond: ClassVar[float] = 1.0

    @property
    def ranked(self) -> tuple[float, ...]:
        return self.conformity

    @staticmethod
    def scores(mixture: NumberMixture, targets: PerRow, start: int = 0) -> PerRow:
        """|2F(y) − 1| of a calibrated mixture, randomised where values have a probability.

        Without the randomisation the intervals of whole numbers would be narrower, as their ends
        have probability. They would cover the level on average, but too little where numbers are
        large.
        """
        return (2 * mixture.pit(targets, start) - 1).abs().clamp(max=1)

    def intervals(
        self, mixture: NumberMixture, levels: Sequence[float], groups: Groups = None
    ) -> list[Bounds]:
        """The conformal interval of each level; `mixture` is calibrated."""
        drops_ends, means = mixture.target.drops_ends, mixture.mean()
        bounds = self.bounds(means, mixture.total(), levels, groups)
        tails = self.tails(bounds, means, drops_ends=drops_ends)
        ends, _ = chosen(mixture.quantiles_at(tails), tails, drops_ends=drops_ends)
        return list(zip(*ends, strict=True))

    @staticmethod
    def tails(
        scores: Sequence[float] | Float[Tensor, "levels rows"],
        means: PerRow,
        *,
        drops_ends: bool,
    ) -> Ends:
        """`interval_tails` of the intervals that contain targets with at most these conformities.

        Args:
            scores: for all rows or for each.
            means: of the rows.
        """
        if not isinstance(scores, Tensor):
            scores = means.new_tensor(scores).unsqueeze(1).expand(-1, len(means))
        return interval_tails(scores.clamp(max=1.0), drops_ends=drops_ends)


def about(mean: PerRow, deviation: PerRow, scores: Iterable[float | PerRow]) -> list[Bounds]:
    """The intervals about the mean that contain residuals up to each score."""
    halves = [score * deviation for score in scores]
    return [(mean - half, mean + half) for half in halves]


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
    scaling: Sequence[LabelledMixture],
    rows: Iterable[LabelledMixture],
    *,
    shaped: bool = False,
    groups: int = 0,
) -> Calibration:
    """Fit the scale to `scaling`, and rank the residuals, conformities or sets of all rows.

    With groups each has quantiles of its own. Without them low, middle and high means or deviations
    have, if one quantile does not cover them alike (`models.evaluation.cells`).

    Args:
        scaling: rows whose mixtures are in memory together.
        rows: all rows, read once.
        shaped: whether conformal intervals lie between quantiles.
        groups: the number of groups; 0 without them.
    """
    scale = fit_scale(scaling)
    if isinstance(scaling[0].mixture, CategoricalMixture):
        of_classes = [
            (_scaled(part.mixture, scale).mean(), part.targets, filled(part.weights, part.targets))
            for part in rows
        ]
        sets = fit_sets(*map(torch.cat, zip(*of_classes, strict=True)))
        return ClassCalibration(scale, sum(len(part.targets) for part in scaling), sets)
    kind = ShapeCalibration if shaped else NumberCalibration
    columns = []
    for part in rows:
        mixture, y = _scaled(part.mixture, scale), part.targets
        assert isinstance(mixture, NumberMixture)
        unknown = torch.full_like(y, -1, dtype=torch.long)
        columns.append(
            (
                kind.scores(mixture, y, part.start),
                mixture.mean(),
                mixture.total().sqrt(),
                filled(part.weights, y),
                unknown if part.groups is None else part.groups,
                torch.full_like(y, not part.only_groups, dtype=torch.bool),
            )
        )
    joined = map(torch.cat, zip(*columns, strict=True))
    scores, means, deviations, weights, numbers, is_common = joined
    common, of_common = scores[is_common], weights[is_common]
    ranked, of_ranked = order_statistics(common, of_common)
    if groups:
        cells: Cells | None = fit_cells(scores, numbers, groups, weights)
    else:
        thirds: Mapping[By, PerRow] = {"size": means[is_common], "deviation": deviations[is_common]}
        cells = fit_thirds(common, thirds, of_common)
    return kind(scale, ranked, len(common), of_ranked, cells)


def fit_scale(labelled: Sequence[LabelledMixture]) -> float:
    """The most probable c or T given the rows' targets; the prior draws it a little towards 1."""
    from scipy.optimize import minimize_scalar  # noqa: PLC0415 - predictions do without

    def loss(log_scale: float) -> float:
        scale = math.exp(log_scale)
        fit = sum(part.log_likelihood(_scaled(part.mixture, scale)) for part in labelled)
        return 0.5 * (log_scale / PENALTY_SCALE) ** 2 - fit

    options = {"xatol": _TOLERANCE}  # one Gaussian or softmax has only one minimum
    best = minimize_scalar(loss, bounds=(-_BOUND, _BOUND), method="bounded", options=options)
    return math.exp(best.x)


def _scaled(mixture: Mixture, scale: float) -> Mixture:
    if isinstance(mixture, NumberMixture):
        return mixture.scaled(scale)
    return mixture.tempered(scale)
