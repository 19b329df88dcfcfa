"""Covariates that are known only in the past: values up to a known step, held from there on.

A window that predicts the step h ahead of a forecast's origin has h − 1 steps whose covariates
nobody knows: they hold the last known values, and an indicator tells them. Windows of training get
such ends, too: h of each window is drawn once, evenly from 1 to the horizon. So the network learns
p(change of the next step | the series so far, covariates up to the origin), which is what every
step of a path asks for.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from models.randomness import generator


def draw_unknown(rows: int, horizon: int, seed: int) -> Int64[Tensor, "rows"]:
    """The number of steps without known covariates at the end of the window before each step."""
    return torch.randint(horizon, (rows,), generator=generator(seed, "unknown"))


def held(
    values: Float[Tensor, "steps observed"],
    positions: Int64[Tensor, "rows context"],
    last: Int64[Tensor, "rows"],
) -> Float[Tensor, "rows context marked"]:
    """The values at these positions, after the last known one held, and the indicator of that."""
    until = last.unsqueeze(1)
    found = values[torch.minimum(positions, until)]
    return torch.cat([found, (positions > until).unsqueeze(-1).to(found)], dim=-1)


def continued(
    values: Float[Tensor, "context observed"], horizon: int
) -> Float[Tensor, "steps marked"]:
    """The values of a forecast's steps: those of the context, then held and marked as that."""
    ahead = values[-1:].expand(horizon - 1, -1)
    marks = torch.arange(len(values) + horizon - 1) >= len(values)
    return torch.cat([torch.cat([values, ahead]), marks.unsqueeze(1).to(values)], dim=-1)
