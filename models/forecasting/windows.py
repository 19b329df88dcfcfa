"""A window of the past as network inputs, and the network's output as a change of the series.

With u = g(y) (`models.forecasting.observation`), a window of C steps before step t, and a season s
or several, the network predicts

    r_t = (u_t − b) / c,      u_t = b + c r_t

where b is u_{t−s} of one of the seasons, or the window's mean: what is closest to u_t in training.
It sees at each position j the value (u_j − ℓ)/c and the last change (u_j − u_{j−s})/c from each
season, where ℓ is the mean of the window's C values. If u = y, c is the standard deviation of
these and the longest season before them, or a share of their mean size where they hardly vary; on
other scales c = 1. So 1000 times the series gives 1000 times the forecast. The change of variables
of a density is log p(y) = log p(r) − log c + log |du/dy|.
Scaling by the window: Salinas et al. 2020 (DeepAR, arXiv 1704.04110), §3.3.

Missing values are filled, so that a window can be read: as inputs only, never as targets. Let
values a … b−1 be missing, and s the season. L is the least multiple of s that is longer than the
hole, so that a season before is known or filled for each of its steps. Then

    x_t = x_{t−L} + c_t,

where c goes linearly from x_{a−1} − x_{a−1−L} to x_b − x_{b−L}: the shape of the season before at
the level of the values around the hole. Without a season, or without L steps before the hole, it
is the line from x_{a−1} to x_b. At the end of a series c stays as it is before the hole.

A filled value follows from values up to x_b only. A window that ends in a known value and predicts
a later one thus reads nothing of what it predicts.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float, Float64
from pydantic import Field
from torch import Tensor

from models.config import ForecastConfig
from models.config.ranges import Flag, NotNegative, Positive
from models.exceptions import InvalidData
from models.features.targets import NumberTarget
from models.forecasting.observation import PLAIN, Observation

MOST_MISSING = 0.5  # of a window that is read: beyond it most of the inputs would be made up


def fill(values: Float[np.ndarray, "steps"], season: int) -> Float[np.ndarray, "steps"]:
    """The values with every missing one filled, except those before the first known value."""
    missing = np.isnan(values)
    if not missing.any():
        return values
    filled = values.copy()
    ends = np.flatnonzero(np.diff(missing, prepend=False, append=False))  # of every hole
    for start, stop in ends.reshape(-1, 2).tolist():
        if start > 0:
            filled[start:stop] = _between(filled, start, stop, season)
    return filled


def readable(values: Float[np.ndarray, "steps"], span: int) -> np.ndarray:
    """Whether the `span` values that end at each step can be read: [steps − span + 1].

    The last of them must be known, the first known or filled, and not too many missing.
    """
    missing = np.isnan(values)
    before = np.concatenate([[0], np.cumsum(missing)])
    few = before[span:] - before[:-span] <= MOST_MISSING * span
    begun = np.logical_or.accumulate(~missing)[: len(values) - span + 1]
    return few & ~missing[span - 1 :] & begun


def _between(filled: np.ndarray, start: int, stop: int, season: int) -> np.ndarray:
    """The filled values of a hole, all of whose earlier values are known or filled."""
    lag = season * ((stop - start) // season + 1)
    reference = np.zeros(stop - start + 2)  # of the steps from before the hole to after it
    if season > 1 and start - 1 >= lag and not np.isnan(filled[start - 1 - lag]):
        reference = filled[start - 1 - lag : stop + 1 - lag]
    left = filled[start - 1] - reference[0]
    right = filled[stop] - reference[-1] if stop < len(filled) else left
    line = np.linspace(left, right, stop - start + 2)
    return (reference + line)[1:-1]


_FLAT = 0.05  # quantile of the training windows' scale ÷ size that is the least for any window
# Of standardised inputs. Hardly any input is beyond it in training. It keeps a diverging path from
# giving the network inputs that it was never fitted to.
_BOUND = 10.0

STANDARD = NumberTarget(0.0, 1.0)

StepCount = Annotated[int, Field(strict=True, ge=0, le=100_000)]

Pasts = Float64[Tensor, "*rows span"]


@dataclass(frozen=True)
class Reading:
    """Network inputs of windows. An output r stands for the next u = base + scale · r."""

    inputs: Float64[Tensor, "*rows context channels"]
    base: Float64[Tensor, "*rows"]
    scale: Float64[Tensor, "*rows"]


@dataclass(frozen=True)
class Frame:
    """How windows become network inputs.

    Args:
        observation: the scale of u, and how y follows from it.
        floor: the least scale ÷ size of a window.
        usual: the scale of a window of zeros.
        spread: standardises the values, as in training.
        change: standardises r, as in training.
        from_mean: whether r is counted from the window's mean.
        shorter: further seasons, each shorter than `season`.
        lag: the season from whose last value r is counted; None for the longest.
    """

    context: StepCount
    season: StepCount
    observation: Observation = PLAIN
    floor: NotNegative = 0.0
    usual: Positive = 1.0
    spread: Positive = 1.0
    change: NumberTarget = STANDARD
    from_mean: Flag = False
    shorter: tuple[StepCount, ...] = ()
    lag: StepCount | None = None

    @classmethod
    def of(cls, forecast: ForecastConfig, observation: Observation) -> "Frame":
        """The frame of a configuration. Its scales are not fitted yet."""
        *shorter, longest = forecast.seasons
        return cls(int(forecast.context or 1), longest, observation, shorter=tuple(shorter))

    @property
    def seasons(self) -> tuple[int, ...]:
        """All seasons, the shortest first."""
        return (*self.shorter, self.season)

    @property
    def channels(self) -> int:
        """The inputs of a step from the series itself: its value, and a change per season."""
        return 1 + len(self.seasons)

    @property
    def span(self) -> int:
        """The number of steps that are read before the predicted one."""
        return self.context + self.season

    def transform(self, values: np.ndarray) -> np.ndarray:
        """y → u."""
        return self.observation.read(values)

    def fit(self, past: Pasts, following: Float64[Tensor, "rows"]) -> "Frame":
        """A copy with the scales of these windows and the values that follow them.

        Raises:
            InvalidData: if nothing ever changes.
        """
        floored = self._with_floor(past) if self.observation.is_identity else self
        lags = [replace(floored, lag=season) for season in self.shorter]
        options = [floored, *lags, replace(floored, from_mean=True)]
        chosen = min(options, key=lambda one: float(one._changes(past, following).square().mean()))  # noqa: SLF001
        spread = float(chosen.read(past).inputs[..., 0].square().mean().sqrt())
        change = NumberTarget.fit(chosen._changes(past, following).numpy())  # noqa: SLF001
        return replace(chosen, spread=spread or 1.0, change=change)

    def read(self, past: Pasts) -> Reading:
        """Inputs of windows of `span` steps, the latest last; in training and in paths alike."""
        window = past[..., self.season :]
        scale = torch.ones_like(past[..., 0])
        if self.observation.is_identity:
            scale = torch.maximum(past.std(-1, correction=0), self.floor * past.abs().mean(-1))
            scale = torch.where(scale > 0, scale, self.usual)
        level, unit = window.mean(-1, keepdim=True), scale.unsqueeze(-1)
        values = (window - level) / unit / self.spread
        starts = [self.season - season for season in (self.season, *self.shorter)]
        earlier = [past[..., start : start + self.context] for start in starts]  # a season before
        changes = [(window - before) / unit for before in earlier]
        standard = [(one - self.change.mean) / self.change.std for one in changes]
        inputs = torch.stack([values, *standard], dim=-1).clamp(-_BOUND, _BOUND)
        base = level.squeeze(-1) if self.from_mean else past[..., -(self.lag or self.season)]
        return Reading(inputs, base, scale)

    def targets(self, past: Pasts, following: Float64[Tensor, "rows"]) -> Float[Tensor, "rows"]:
        """The standardised r, which the network is to predict."""
        return ((self._changes(past, following) - self.change.mean) / self.change.std).float()

    def _changes(self, past: Pasts, following: Float64[Tensor, "rows"]) -> Float64[Tensor, "rows"]:
        """r."""
        reading = self.read(past)
        return (following - reading.base) / reading.scale

    def _with_floor(self, past: Pasts) -> "Frame":
        scales, sizes = past.std(-1, correction=0), past.abs().mean(-1)
        varied = scales > 0
        if not bool(varied.any()):
            raise InvalidData("the target never changes within a window: nothing can be learned")
        floor = float(torch.quantile((scales / sizes)[varied], _FLAT))
        return replace(self, floor=floor, usual=float(scales[varied].median()))


def windows(
    values: np.ndarray, span: int, season: int = 1
) -> tuple[np.ndarray, Pasts, Float64[Tensor, "rows"]]:
    """Every known step that follows `span` steps that can be read: its number, past and value.

    Missing steps of the past are filled from values before the predicted one.
    """
    if len(values) <= span:
        return np.empty(0, np.int64), torch.empty(0, span).double(), torch.empty(0).double()
    chosen = readable(values, span)[:-1] & ~np.isnan(values[span:])
    views = np.lib.stride_tricks.sliding_window_view(fill(values, season), span + 1)
    cut = torch.from_numpy(views[chosen].copy())
    return np.flatnonzero(chosen) + span, cut[:, :-1], cut[:, -1]
