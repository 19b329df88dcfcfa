"""Several methods on the same rows: which are worse than the best, and how lucky the best is.

Notation: m_j is the mean score of method j, C the covariance of these means over other rows of the
same kind, estimated from the rows; V_ij = C_ii + C_jj − 2 C_ij is the variance of m_i − m_j.

- `worse`: m_best − m_j > c √V, with c the 95 % quantile of max over all pairs i, j of |Z_i − Z_j| ÷
  √V_ij ÷ √(χ²_ν / ν), Z ~ N(0, C), ν = n − 1. Whatever the true means, at most 5 % of comparisons
  wrongly call a method worse (all pairs: Tukey 1953; from an estimated covariance: Hothorn, Bretz
  and Westfall 2008). This holds for means that are Gaussian, as those of many rows are.
- `optimism`: the best of several scores is too good by E[m_best − truth]. If the best is chosen on
  one half of the rows, its score there exceeds that on the other half by √2 times as much, because
  the bias falls with √n. The halves' means are m ± e with e ~ N(0, C), so that the difference is
  2 E[e_b], b = argmax(m + e), and optimism = √2 E[e_b]. If all methods are equal, this is right on
  average; if one is best by far, it is 0.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from models.evaluation.weighting import Paired, PerRow, Weights, filled, paired

ERROR_RATE = 0.05  # of comparisons that wrongly call a method worse
_DRAWS = 10_000  # a 95 % quantile then has a level within 0.5 points
_SEED = 0  # so that the result is a function of the scores

Covariance = Float[np.ndarray, "methods methods"]


@dataclass(frozen=True)
class Ranking:
    """Methods compared with the best one.

    Args:
        best: the number of the method with the highest mean score.
        differences: the best one's scores − those of each method, per row; 0 for itself.
        worse: whether each method is worse than the best one, at `ERROR_RATE` for all together.
        optimism: how much the best one's mean score is too good because it was chosen.
    """

    best: int
    differences: tuple[Paired, ...]
    worse: tuple[bool, ...]
    optimism: float


def rank(scores: Sequence[PerRow], weights: Weights | None = None) -> Ranking | None:
    """Compare methods by their scores on the same rows; None for fewer than two rows or methods.

    Args:
        scores: of each method, higher is better, in the same order of rows.
        weights: of the rows.
    """
    if len(scores) < 2:
        return None
    weights = filled(weights, scores[0])
    degrees = float(weights.sum()) - 1
    if degrees <= 0:
        return None
    means, covariance = _moments(scores, weights)
    best = int(means.argmax())
    noise, largest, variances = _noise(covariance), 0.0, np.diag(covariance)
    for i in range(len(scores)):  # |t| of all pairs
        of_pairs = variances[i] + variances - 2 * covariance[i]
        deviation = np.sqrt(np.where(of_pairs > 1e-12 * variances.max(), of_pairs, np.inf))
        largest = np.maximum(largest, (np.abs(noise[:, [i]] - noise) / deviation).max(1))
    critical = np.quantile(largest / _spread(degrees), 1 - ERROR_RATE)
    differences = tuple(paired(scores[best], each, weights) for each in scores)
    worse = tuple(bool(d.difference > critical * d.standard_error) for d in differences)
    chosen = (means + noise).argmax(1)
    optimism = math.sqrt(2) * float(np.take_along_axis(noise, chosen[:, None], 1).mean())
    return Ranking(best, differences, worse, max(0.0, optimism))


def better_than(
    control: PerRow, others: Sequence[PerRow], weights: Weights | None = None
) -> list[bool]:
    """Whether each method is better than a control, with `ERROR_RATE` for all of them together.

    One-sided: at most 5 % of comparisons wrongly call a method better (Dunnett 1955, with the
    estimated covariance).
    """
    weights = filled(weights, control)
    degrees = float(weights.sum()) - 1
    if degrees <= 0 or not others:
        return [False] * len(others)
    gains = [each.double() - control.double() for each in others]
    means, covariance = _moments(gains, weights)
    errors = np.sqrt(np.diag(covariance))
    scaled = _noise(covariance) / np.where(errors > 0, errors, np.inf)
    critical = np.quantile(scaled.max(1) / _spread(degrees), 1 - ERROR_RATE)
    return [bool(m > critical * e) for m, e in zip(means, errors, strict=True)]


def _moments(
    scores: Sequence[PerRow], weights: Weights
) -> tuple[Float[np.ndarray, "methods"], Covariance]:
    """The mean of each method's scores, and the covariance of these means."""
    table = torch.stack([each.double().cpu() for each in scores])
    w = weights.cpu()
    rows = w.sum()
    means = table @ w / rows
    centred = table - means[:, None]
    covariance = (centred * w) @ centred.T / (rows - 1) / rows
    return means.numpy(), covariance.numpy()


def _noise(covariance: Covariance) -> Float[np.ndarray, "draws methods"]:
    """Draws of N(0, C)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(values.clip(0))
    normal = np.random.default_rng(_SEED).standard_normal((_DRAWS // 2, len(covariance)))
    return np.concatenate([normal, -normal]) @ root.T


def _spread(degrees: float) -> Float[np.ndarray, "draws"]:
    """Draws of √(χ² ÷ degrees)."""
    drawn = np.random.default_rng(_SEED + 1).chisquare(degrees, _DRAWS)
    return np.sqrt(drawn / degrees)


def recommend_variant(
    log_likelihoods: Mapping[float, PerRow], weights: Weights | None = None
) -> tuple[float, Paired | None]:
    """The pruned fraction that is better than the full model, if one certainly is.

    Returns:
        The best of those that `better_than` names, and its difference from the full model; 0.0 and
        None if it names none. If no variant is better, the full model is recommended with a
        probability of 95 % or more, however many variants there are.

    Args:
        log_likelihoods: of each held-out row, by pruned fraction; 0.0 is the full model.
        weights: of these rows.
    """
    full = log_likelihoods[0.0]
    pruned = {prune: rows for prune, rows in log_likelihoods.items() if prune}
    are_better = better_than(full, list(pruned.values()), weights)
    pairs = {
        prune: paired(rows, full, weights)
        for (prune, rows), is_better in zip(pruned.items(), are_better, strict=True)
        if is_better
    }
    if not pairs:
        return 0.0, None
    best = max(pairs, key=lambda prune: pairs[prune].difference)
    return best, pairs[best]
