"""A Gaussian copula: the dependence of several targets, apart from the distribution of each.

Sklar's theorem (Nelsen 2006, An Introduction to Copulas, §2.3): a joint distribution is that of its
marginal distributions F_k, and that of the uniform F_k(Y_k). The copula says that the normal
scores Φ⁻¹(F_k(Y_k)) are jointly Gaussian with a correlation R.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.special import ndtri

from models.randomness import generator

Matrix = Float[np.ndarray, "targets targets"]


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
    found = np.einsum("n,nij->ij", share, products)
    # The variance of a weighted mean of products, as if the weights were numbers of rows.
    spread = np.einsum("n,nij->ij", share, (products - found) ** 2) / (weights.sum() - 1)
    others = ~np.eye(targets, dtype=bool)
    size = float((found[others] ** 2).sum())
    shrinkage = min(1.0, float(spread[others].sum()) / size) if size > 0 else 1.0
    return np.where(others, (1 - shrinkage) * found, 1.0)


def _normal_scores(values: Float[np.ndarray, "rows"]) -> Float[np.ndarray, "rows"]:
    """Φ⁻¹ of rank ÷ (n + 1); equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - 0.5 * (counts - 1))[inverse]
    return np.asarray(ndtri(torch.from_numpy(ranks / (len(values) + 1))))


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
