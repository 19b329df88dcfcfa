"""Bounds on what one label can change: scores as if no error were beyond a multiple of the usual.

One wrong label, by mistake or on purpose, would otherwise decide a mean for a thousand rows. The
scale of a row is the held-out root mean squared error of the version, or the row's own standard
deviation if that is larger. Source: Huber and Ronchetti, Robust Statistics, 2009, section 1.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from models.evaluation.metrics import PerRowScores

FARTHEST = 30.0  # scales: an error of a row counts at most as this
IMPOSSIBLE = 1e6  # scales: a label that is farther away is refused
_LOG_LIKELIHOODS = ("log_likelihood", "uncalibrated_log_likelihood")


def winsorise(scores: PerRowScores, held_out: Mapping[str, Any]) -> PerRowScores:
    """The scores with errors of at most `FARTHEST` scales.

    A log likelihood is at most so far below the held-out mean as that of a Gaussian there,
    `FARTHEST`² / 2 nats. Shares, such as coverage, need no bound.

    Args:
        held_out: the version's metrics on held-out rows.
    """
    expected = held_out.get("log_likelihood")
    lowest = None if expected is None else expected - FARTHEST**2 / 2
    bounded = dict(scores)
    for name in _LOG_LIKELIHOODS:
        if name in scores and lowest is not None:
            bounded[name] = scores[name].clamp_min(lowest)
    if "mae" in scores:
        farthest = FARTHEST * _scale(scores, held_out)
        for name, limit in (("mae", farthest), ("crps", farthest), ("squared_error", farthest**2)):
            bounded[name] = torch.minimum(scores[name], limit)
    return bounded


def impossible_rows(scores: PerRowScores, held_out: Mapping[str, Any]) -> list[int]:
    """The rows whose label is more than `IMPOSSIBLE` scales from its prediction."""
    if "mae" not in scores:
        return []
    far = scores["mae"] > IMPOSSIBLE * _scale(scores, held_out)
    return torch.nonzero(far).flatten().tolist()


def _scale(scores: PerRowScores, held_out: Mapping[str, Any]) -> Tensor:
    """The scale of each row; infinite if neither is known."""
    own = scores.get("uncertainty", torch.zeros_like(scores["mae"]))
    usual = float(held_out.get("rmse") or 0.0)
    scale = torch.where(own.isfinite(), own, 0.0).clamp_min(usual)
    return torch.where(scale > 0, scale, torch.inf)
