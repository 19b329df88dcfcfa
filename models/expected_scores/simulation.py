"""Scores of simulated labels, summed over rows: world by world the score of a whole data set.

In world w one sample of the posterior is the truth, for all rows of all data sets. What the labels
of different rows have in common, because the same weights are wrong about them, is so preserved.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from models.evaluation.calibration import (
    AnyNumberCalibration,
    Calibration,
    ClassCalibration,
    LabelledMixture,
)
from models.evaluation.metrics import inside
from models.likelihoods.class_mixture import CategoricalMixture, Mixture
from models.likelihoods.number_mixture import NumberMixture
from models.likelihoods.shaped import draw

WORLDS = (
    100  # sets of labels; as many as the default samples, so that each sample is once the truth
)
DENSITY_WORLDS = 20  # for the log likelihood of numbers, a sum over all samples for each label

LEVELS = (0.9,)  # of the intervals whose coverage is expected: quantiles take the most time

RowScores = dict[str, Float[Tensor, "_ rows"]]  # some scores are of fewer labels
Groups = Int[Tensor, "rows"] | None


@dataclass(frozen=True)
class Simulated:
    """Sums over rows, weighted by the rows' weights.

    Args:
        rows, weight: number of rows, and the sum of their weights.
        worlds: by score, the sum of the score of the labels in each world.
        loss, loss_squares: the sum of the loss that each row expects (`expected_loss`), and of its
            square.
        labelled, actual: the weight of rows with a known label, and by score their sum.
        flagged: number of rows unlike those of training.
    """

    rows: int
    weight: float
    worlds: Mapping[str, Float[Tensor, "_"]]
    loss: float
    loss_squares: float
    labelled: float = 0.0
    actual: Mapping[str, float] = field(default_factory=dict)
    flagged: int = 0

    @classmethod
    def joined(cls, parts: Sequence["Simulated"]) -> "Simulated":
        """The sums over the rows of all parts."""
        joined: dict[str, Any] = {}
        for one in fields(cls):
            values = [getattr(part, one.name) for part in parts]
            if isinstance(values[0], Mapping):
                joined[one.name] = {name: sum(each[name] for each in values) for name in values[0]}
            else:
                joined[one.name] = sum(values)
        return cls(**joined)


@dataclass(frozen=True)
class Drawn:
    """Scores of simulated labels of some rows, and of the known ones."""

    weights: Float[Tensor, "rows"]
    simulated: RowScores
    actual: RowScores
    loss: Float[Tensor, "rows"]

    def sums(self, known: Bool[Tensor, "rows"]) -> Simulated:
        """The sums over the rows; those of labels over rows whose label is known."""
        each, labelled = self.weights, torch.where(known, self.weights, 0.0)
        actual = {
            name: float(labelled @ torch.where(known, values[0], 0.0))
            for name, values in self.actual.items()
        }
        return Simulated(
            rows=len(each),
            weight=float(each.sum()),
            worlds={name: (values @ each).cpu() for name, values in self.simulated.items()},
            loss=float(each @ self.loss),
            loss_squares=float(each @ self.loss.square()),
            labelled=float(labelled.sum()),
            actual=actual,
        )

    def held_out(self) -> "HeldOut":
        """What is kept of rows all of whose labels are known."""
        moments = {
            name: torch.stack([self.actual[name][0], drawn.mean(0), drawn.var(0)]).cpu()
            for name, drawn in self.simulated.items()
        }
        all_known = torch.ones_like(self.loss, dtype=torch.bool)
        return HeldOut(self.sums(all_known), self.weights.cpu(), moments)


@dataclass(frozen=True)
class HeldOut:
    """What is kept of some held-out rows.

    Args:
        moments: by score, that of each row's label, and mean and variance over the simulated ones.
    """

    sums: Simulated
    weights: Float[Tensor, "rows"]
    moments: Mapping[str, Float[Tensor, "3 rows"]]


def simulate(
    labelled: LabelledMixture, calibration: Calibration | None, noise: torch.Generator
) -> Drawn:
    """Draw labels of some rows from their calibrated predictions, and score them as real ones.

    Args:
        labelled: not yet calibrated; its targets may be anything where they are not known.
    """
    mixture, weights = labelled.mixture, labelled.weights
    final = mixture if calibration is None else calibration.apply(mixture)
    score = scorer(final, calibration, labelled.groups)
    loss = expected_loss(final)
    return Drawn(
        weights=torch.ones_like(loss) if weights is None else weights.to(loss),
        simulated=score(draw_labels(final, WORLDS, noise)),
        actual=score(labelled.targets.unsqueeze(0)),
        loss=loss,
    )


def expected_loss(mixture: Mixture) -> Float[Tensor, "rows"]:
    """The loss that a calibrated prediction expects of its row.

    Classes: 1 − the largest probability, the expected share of wrong labels. Numbers: the total
    standard deviation, the root of the expected squared error.
    """
    if isinstance(mixture, CategoricalMixture):
        return 1 - mixture.mean().amax(-1)
    return mixture.total().sqrt()


def scorer(
    mixture: Mixture, calibration: Calibration | None, groups: Groups = None
) -> Callable[[Shaped[Tensor, "labels rows"]], RowScores]:
    """The function that scores labels under a calibrated prediction, as `row_scores` does."""
    if isinstance(mixture, CategoricalMixture):
        return _class_scorer(mixture.mean())
    assert not isinstance(calibration, ClassCalibration)
    return _number_scorer(mixture, calibration, groups)


def _class_scorer(probs: Float[Tensor, "rows classes"]) -> Callable[[Tensor], RowScores]:
    predicted, squares = probs.argmax(-1), probs.square().sum(-1)

    def score(labels: Int[Tensor, "labels rows"]) -> RowScores:
        of_label = probs.gather(-1, labels.T).T
        return {
            "accuracy": (labels == predicted).double(),
            "log_likelihood": of_label.clamp_min(1e-300).log(),
            "brier": squares - 2 * of_label + 1,
        }

    return score


def _number_scorer(
    mixture: NumberMixture, calibration: AnyNumberCalibration | None, groups: Groups
) -> Callable[[Tensor], RowScores]:
    mean = mixture.mean()
    intervals = {"coverage": list(zip(*mixture.intervals(LEVELS), strict=True))}
    if calibration is not None:
        found = calibration.intervals(mixture, LEVELS, groups)
        intervals["conformal_coverage"] = found

    def score(labels: Float[Tensor, "labels rows"]) -> RowScores:
        error = labels - mean
        scores = {"squared_error": error.square(), "mae": error.abs()}
        worlds = labels[:: max(1, len(labels) // DENSITY_WORLDS)]
        scores["log_likelihood"] = torch.stack([mixture.log_prob(world) for world in worlds])
        for kind, bounds in intervals.items():
            for level, ends in zip(LEVELS, bounds, strict=True):
                scores[f"{kind}_{level:g}"] = inside(labels, *ends)
        return scores

    return score


def draw_labels(
    mixture: Mixture, worlds: int, noise: torch.Generator
) -> Shaped[Tensor, "worlds rows"]:
    """A label of each row in each world: numbers in the target's units, or numbers of classes.

    The worlds divide the samples among themselves as evenly as can be, in their order.
    """
    sample = torch.arange(worlds) * mixture.num_samples // worlds
    if isinstance(mixture, CategoricalMixture):
        return _draw_classes(mixture, sample, noise)
    locs, scales, weights, atoms = (
        part[sample].transpose(1, 2)
        for part in (mixture.locs, mixture.scales, mixture.weights, mixture.atoms)
    )
    shares = torch.cat([weights, atoms], dim=-1)
    return draw(mixture.target, mixture.family, locs, scales, shares, noise)


def _draw_classes(
    mixture: CategoricalMixture, sample: Int[Tensor, "worlds"], noise: torch.Generator
) -> Tensor:
    """The class in whose part of [0, 1] a uniform number lies."""
    ends = mixture.probs[sample].cumsum(-1)
    uniform = torch.rand(ends.shape[:-1], generator=noise, dtype=ends.dtype, device=ends.device)
    chosen = (uniform.unsqueeze(-1) * ends[..., -1:] >= ends).sum(-1)
    return chosen.clamp_max(ends.shape[-1] - 1)
