"""How improbable the newest values of a history are, each given the values before it.

The value y_t is compared with its predictive distribution F from the steps before t: with
p = min(1, 2 min(P(Y ≤ y_t), P(Y ≥ y_t))). If the model is right, F(y_t) is uniform and independent
of the values before (Rosenblatt 1952; Dawid 1984), so that p is uniform too, and the p-values of N
steps together have the one of −2 Σ ln p under χ² with 2N degrees of freedom (Fisher 1932).

A value after a hole is predicted from the last known one before the hole, so many steps ahead.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float64, Int, Int64
from torch import Tensor

from models.exceptions import InvalidInput
from models.features.columns import Columns
from models.forecasting.forecast import Forecast
from models.forecasting.rollout import History, Scored
from models.forecasting.series import Series
from models.forecasting.windows import readable


@dataclass(frozen=True)
class Origins:
    """Where the newest values of a series are predicted from.

    Args:
        lasts: the last known step before each value.
        leads: how many steps after that it is; 0 if it is not scored.
    """

    series: Series
    lasts: Int[np.ndarray, "newest"]
    leads: Int[np.ndarray, "newest"]

    @property
    def pasts(self) -> list[Series]:
        """The steps up to the last known one, of each value."""
        return [self.series.until(last + 1) for last in self.lasts.tolist()]

    def ahead(self, steps: int) -> list[Columns]:
        """The columns of the steps after those; after the end the last step repeats."""
        rows = np.minimum(self.lasts[:, None] + 1 + np.arange(steps), len(self.series) - 1)
        columns = self.series.columns.items()
        return [{name: values[some] for name, values in columns} for some in rows]


def origins_of(one: Series, count: int, span: int, longest: int) -> Origins:
    """The origins of the `count` newest values of a series.

    Args:
        longest: the most steps that a value may be ahead.

    Raises:
        InvalidInput: if the series is too short.
    """
    if len(one) < span + count:
        of_series = "" if one.key is None else f" of {one.key!r}"
        raise InvalidInput(
            f"the history{of_series} has {len(one)} steps; to score the newest {count} this model "
            f"reads {span} before each: give {span + count} steps, or score fewer",
            "/anomalies",
        )
    firsts = np.arange(len(one) - count, len(one))
    lasts = np.array([_last_known(one.values, first) for first in firsts.tolist()])
    whole = readable(one.values, span)
    leads = firsts - lasts
    can_be_read = (lasts >= span - 1) & whole[np.maximum(lasts - span + 1, 0)]
    is_scored = ~np.isnan(one.values[firsts]) & can_be_read & (leads <= longest)
    lasts = np.where(is_scored, lasts, len(one) - 1)  # a past that can be read
    return Origins(one, lasts, np.where(is_scored, leads, 0))


def _last_known(values: np.ndarray, first: int) -> int:
    """The last step before `first` with a value; −1 without one."""
    known = np.flatnonzero(~np.isnan(values[:first]))
    return int(known[-1]) if len(known) else -1


@dataclass(frozen=True)
class Newest(Scored):
    """The newest values of several series, `count` of each.

    Args:
        history: the pasts of all values, series after series.
        leads: how many steps ahead each value is; 0 if it is not scored.
    """

    count: int
    history: History
    leads: Int64[Tensor, "values"]
    values: Float64[Tensor, "values"]
    times: np.ndarray

    def of_rows(self, rows: slice) -> "Newest":
        """Those of some series."""
        of = slice(*(None if s is None else s * self.count for s in (rows.start, rows.stop)))
        return replace(
            self,
            history=self.history.rows(of),
            leads=self.leads[of],
            values=self.values[of],
            times=self.times[of],
        )

    def scores(self, forecast: Forecast, rate: float) -> dict[str, np.ndarray]:
        """The values of the answer, given the forecasts from all pasts.

        Args:
            rate: false alarms among usual values.
        """
        horizon = self.history.horizon
        p = two_sided(forecast, self.values.repeat_interleave(horizon)).unflatten(0, (-1, horizon))
        p = p.gather(1, (self.leads - 1).clamp_min(0).unsqueeze(1)).squeeze(1)
        p = torch.where(self.leads > 0, p, math.nan).unflatten(0, (-1, self.count))
        joint = jointly(p)
        each = {
            "value": self.values.unflatten(0, (-1, self.count)),
            "p_value": p,
            "surprise": -torch.log2(p),
            "flagged": p < rate,
            "joint_p_value": joint,
            "joint_flagged": joint < rate,
        }
        found = {name: values.cpu().numpy() for name, values in each.items()}
        return {"time": self.times.reshape(-1, self.count)} | found


def two_sided(forecast: Forecast, values: Float64[Tensor, "steps"]) -> Float64[Tensor, "steps"]:
    """min(1, 2 min(P(Y ≤ y), P(Y ≥ y))) of every step; the tails keep their digits."""
    y = values.to(forecast.draws)
    below = torch.nextafter(y, torch.full_like(y, -math.inf))
    at_least = forecast.of_y.survival(below.unsqueeze(0)).squeeze(0)
    return (2 * torch.minimum(forecast.of_y.cdf(y), at_least)).clamp(0, 1)


def jointly(p: Float64[Tensor, "series newest"]) -> Float64[Tensor, "series"]:
    """P(χ²_{2N} ≥ −2 Σ ln p) over the N values that are scored; NaN if none is."""
    known = ~p.isnan()
    total, count = -torch.where(known, p, 1.0).log().sum(1), known.sum(1)
    tail = torch.special.gammaincc(count.clamp_min(1).to(total), total)
    return torch.where(count > 0, tail, math.nan)


def newest_of(
    pasts: Sequence[Series], origins: Sequence[Origins], history: History, time: str
) -> Newest:
    """Joins the origins of all series, whose pasts the history has in that order."""
    count, device = len(origins[0].leads), history.past.device
    leads = np.concatenate([one.leads for one in origins]).astype(np.int64)
    values = np.concatenate([one.values[-count:] for one in pasts]).astype(np.float64)
    return Newest(
        count,
        history,
        torch.from_numpy(leads).to(device),
        torch.from_numpy(values).to(device),
        np.concatenate([one.columns[time][-count:] for one in pasts]),
    )
