"""How the targets of a model depend on each other, learned from rows that no weight was fitted to.

A Gaussian copula says in which order draws of the targets belong together. Sklar's theorem (Nelsen
2006, An Introduction to Copulas, §2.3): a joint distribution is that of its marginal distributions
F_k, and that of the uniform F_k(Y_k). The copula says that the normal scores Φ⁻¹(F_k(Y_k)) are
jointly Gaussian with a correlation R.

The joint intervals are conformal (Vovk, Gammerman and Shafer 2005, §2.2), with the largest
conformity of a row's targets as its score (Messoudi, Destercke and Rousseau 2021, §4: one level
for all targets): the targets of a new row lie in all their intervals together with the wanted
probability, whatever the copula.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Float, Int
from torch import Tensor
from torch.special import ndtri

from models.config.ranges import Count, Number, Positive, Probability
from models.evaluation.conformal_rank import MAX_RESIDUALS, RanksScores, order_statistics
from models.randomness import generator

MAX_TARGETS = 16

Matrix = Float[np.ndarray, "targets targets"]


@dataclass(frozen=True)
class Transforms:
    """The distribution functions of one target at the true values of some rows.

    Args:
        randomised: F(y), at values with a probability randomised (`NumberMixture.pit`).
        middle: ½ (F(y−) + F(y)); at other values the same.
        weights: of the rows.
    """

    randomised: Float[np.ndarray, "rows"]
    middle: Float[np.ndarray, "rows"]
    weights: Float[np.ndarray, "rows"]


@dataclass(frozen=True)
class Dependence(RanksScores):
    """A copula, and the scores that give joint intervals their widths.

    `score(level)` is the probability of each target's central interval, so that all cover together.

    Args:
        correlation: of the targets' normal scores (`fit_correlation`).
        scores: the largest |2F_k(y_k) − 1| of each row's targets, in increasing order; of many
            rows only evenly spread order statistics.
        rows: how many there were.
        weights: of the scores; () if each is 1.
    """

    correlation: Annotated[tuple[tuple[Number, ...], ...], Len(2, MAX_TARGETS)]
    scores: Annotated[tuple[Probability, ...], Len(0, MAX_RESIDUALS)]
    rows: Count
    weights: Annotated[tuple[Positive, ...], Len(0, MAX_RESIDUALS)] = ()
    beyond: ClassVar[float] = 1.0  # the intervals are then unbounded

    @property
    def ranked(self) -> tuple[float, ...]:
        return self.scores

    @classmethod
    def fit(cls, targets: Sequence[Transforms]) -> "Dependence":
        """The dependence of targets, whose transforms are of the same rows in the same order."""
        weights = targets[0].weights
        middle = np.column_stack([target.middle for target in targets])
        correlation = fit_correlation(middle, weights)
        largest = torch.from_numpy(largest_conformity(targets))
        of_rows = torch.from_numpy(weights) if (weights != 1).any() else None
        scores, kept = order_statistics(largest, of_rows)
        matrix = tuple(tuple(row) for row in correlation.tolist())
        return cls(matrix, scores, len(largest), kept)

    @classmethod
    def unknown(cls, targets: int) -> "Dependence":
        """That of a model without rows for its calibration: none, and unbounded intervals."""
        identity = tuple(tuple(row) for row in np.eye(targets).tolist())
        return cls(identity, (), 0)

    def coverage(self, targets: Sequence[Transforms], level: float) -> float:
        """The share of rows whose targets all lie in their joint intervals.

        A whole number that an interval ends at counts in part, so that it is at most the share.
        """
        inside = largest_conformity(targets) <= self.score(level)
        return float(np.average(inside, weights=targets[0].weights))


def largest_conformity(targets: Sequence[Transforms]) -> Float[np.ndarray, "rows"]:
    """max_k |2F_k(y_k) − 1| of each row."""
    each = [np.abs(2 * target.randomised - 1).clip(max=1) for target in targets]
    return np.max(each, axis=0)


def fit_correlation(
    transforms: Float[np.ndarray, "rows targets"], weights: Float[np.ndarray, "rows"]
) -> Matrix:
    """The correlation R of the normal scores of the transforms' ranks, shrunk towards the identity.

    Ranks make it indifferent to errors of the marginal distributions (Klaassen and Wellner 1997).
    It is (1 − λ) r + λ I, with λ = Σ Var(r_ij) ÷ Σ r_ij² over i ≠ j, at most 1: the least expected
    squared error (Schäfer and Strimmer 2005, Table 2, target D). So it is positive semidefinite,
    and of few rows close to the identity.

    Args:
        transforms: F_k(y_k) of rows that the distributions were not fitted to.
        weights: of the rows; a row of weight 2 counts as two.
    """
    rows, targets = transforms.shape
    if weights.sum() <= 1 or rows <= 1:
        return np.eye(targets)
    share = weights / weights.sum()
    scores = np.column_stack([_normal_scores(column) for column in transforms.T])
    scores = scores - share @ scores
    deviations = np.sqrt(share @ scores**2)
    scores = scores / np.where(deviations > 0, deviations, np.inf)
    products = scores[:, :, None] * scores[:, None, :]
    correlation = np.einsum("n,nij->ij", share, products)
    # The variance of a weighted mean of products, as if the weights were numbers of rows.
    spread = np.einsum("n,nij->ij", share, (products - correlation) ** 2) / (weights.sum() - 1)
    others = ~np.eye(targets, dtype=bool)
    size = float((correlation[others] ** 2).sum())
    shrinkage = min(1.0, float(spread[others].sum()) / size) if size > 0 else 1.0
    return np.where(others, (1 - shrinkage) * correlation, 1.0)


def _normal_scores(values: Float[np.ndarray, "rows"]) -> Float[np.ndarray, "rows"]:
    """Φ⁻¹ of rank ÷ (n + 1); equal values share the mean of their ranks."""
    from scipy.stats import rankdata  # noqa: PLC0415 - predictions do without

    return np.asarray(ndtri(torch.from_numpy(rankdata(values) / (len(values) + 1))))


def draw_levels(targets: int, samples: int, seed: int) -> Float[np.ndarray, "targets samples"]:
    """The probabilities whose quantiles are drawn: one in each of as many equal parts of (0, 1).

    They increase. A random place in each part makes every moment of the draws unbiased (McKay,
    Beckman and Conover 1979).
    """
    random = generator(seed, "joint levels")
    jitter = torch.rand(targets, samples, generator=random, dtype=torch.float64)
    levels = (torch.arange(samples) + jitter.clamp(1e-6, 1 - 1e-6)) / samples
    return levels.numpy()


def draw_ranks(
    correlation: Matrix, rows: int, samples: int, seed: int
) -> Int[Tensor, "targets samples rows"]:
    """Which of its quantiles each target has in each draw: the ranks of correlated normals.

    So the draws of each target are those quantiles, and only their order depends on the others
    (Clark et al. 2004, the Schaake shuffle, with a copula for the template).
    """
    values, vectors = np.linalg.eigh(correlation)
    root = torch.from_numpy(vectors * np.sqrt(values.clip(min=0)))
    random, shape = generator(seed, "joint draws"), (len(correlation), samples * rows)
    normals = root @ torch.randn(shape, generator=random, dtype=torch.float64)
    return normals.view(-1, samples, rows).argsort(1).argsort(1)
