"""Scores of forecasts some of whose values were never known.

A missing step has the mean score of the known steps of its forecast. So the scores of all forecasts
have one shape, and each forecast counts as one, as those do that are known as a whole.
"""

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

Ahead = Float64[np.ndarray, "forecasts horizon"]


def with_stand_ins(targets: Ahead) -> Float64[Tensor, "steps"]:
    """Targets, one forecast after the other; a missing one is the first known one of its forecast.

    It only stands where a value is needed: `without` takes its score away.
    """
    known = ~np.isnan(targets)
    first = np.take_along_axis(targets, known.argmax(1)[:, None], 1)
    return torch.from_numpy(np.where(known, targets, first).ravel())


def without(scores: dict[str, Tensor], targets: Ahead) -> dict[str, Tensor]:
    """The scores of these targets, with the mean of its forecast where a target is missing."""
    known = torch.from_numpy(~np.isnan(targets))
    if bool(known.all()):
        return scores
    return {name: _averaged(part, known.to(part.device)) for name, part in scores.items()}


def _averaged(part: Float[Tensor, "steps"], known: Tensor) -> Float64[Tensor, "steps"]:
    of_forecasts = part.view(known.shape).double()
    sums = torch.where(known, of_forecasts, 0.0).sum(1, keepdim=True)
    return torch.where(known, of_forecasts, sums / known.sum(1, keepdim=True)).flatten()
