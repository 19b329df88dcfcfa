"""How unusual a history is: its columns as a whole, and its newest values one by one.

*Columns.* A history is flagged if a value is farther outside the ranges of training than any value
of the held-out steps.

*Newest values.* y_t is compared with its predictive distribution F given the steps before t: p =
min(1, 2 min(P(Y ≤ y_t), P(Y ≥ y_t))). If the model is right, F(y_t) is uniform and independent of
the values before (Rosenblatt 1952; Dawid 1984). So p is uniform too, and −2 Σ ln p over N steps has
a χ² distribution with 2N degrees of freedom (Fisher 1932), which gives their joint p-value. A value
after a hole is predicted from the last known one before the hole, several steps ahead.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from models.config import FALSE_ALARMS, ModelConfig
from models.config.ranges import NotNegative, Text
from models.exceptions import InvalidInput
from models.features.columns import Columns, convert, select_rows
from models.features.seen_columns import SeenColumn, SeenColumns
from models.forecasting.forecast import Forecast
from models.forecasting.histories import History, Newest
from models.forecasting.series import Series
from models.forecasting.windows import readable
from models.out_of_distribution.row_reasons import reasons_of_column, strongest
from models.prediction.outputs.reasons import Reason

_LEAST = 1.0  # ranges: a series may grow, and few held-out steps do not tell by how much


@dataclass(frozen=True)
class SeenSeries:
    """The ranges of the target and of the covariates that are numbers, dates or booleans.

    Args:
        names, stored: of these columns, and their types in the data set.
        threshold: the score (`models.features.seen_columns`) above which a history is
            flagged: the largest one of the held-out steps, and at least 1.
    """

    names: Annotated[tuple[Text, ...], Len(1, 100_000)]
    stored: tuple[Text, ...]
    columns: SeenColumns
    threshold: NotNegative = _LEAST

    @classmethod
    def fit(
        cls, config: ModelConfig, types: Mapping[str, str], learned: Columns, held_out: Columns
    ) -> "SeenSeries":
        """The ranges of the learned steps, with the threshold from the held-out ones."""
        kinds = {config.target: "number"} | {
            feature.name: feature.type
            for feature in config.features or ()
            if feature.type in {"number", "datetime", "boolean"}
        }
        seen = [
            SeenColumn.fit(kind, convert(learned[name], types[name], kind), FALSE_ALARMS)
            for name, kind in kinds.items()
        ]
        stored = tuple(types[name] for name in kinds)
        fitted = cls(tuple(kinds), stored, SeenColumns(tuple(seen)))
        _, scores = fitted._scores(held_out)
        largest = float(scores.max(initial=0))
        return replace(fitted, threshold=max(_LEAST, min(largest, 1e300)))

    def reasons(self, columns: Columns) -> tuple[Reason, ...]:
        """The most unusual value of each column, if the history is flagged; else empty."""
        values, scores = self._scores(columns)
        if not scores.size or scores.max() <= self.threshold:
            return ()
        reasons = []
        for i, (name, column) in enumerate(zip(self.names, values, strict=True)):
            row = int(scores[:, i].argmax())
            if scores[row, i] > 0:
                (reason,) = reasons_of_column(name, self.columns.columns[i], column[row : row + 1])
                reasons.append((float(scores[row, i]), reason))
        return strongest(reasons)

    def _scores(self, columns: Columns) -> tuple[list[np.ndarray], Float[np.ndarray, "rows names"]]:
        """The values of each column, and their scores; 0 for missing ones, because gaps are usual
        in a series.
        """
        each = zip(self.names, self.stored, self.columns.columns, strict=True)
        values = [convert(columns[name], stored, one.kind) for name, stored, one in each]
        missing = np.stack([np.isnan(one) for one in values], axis=1)
        return values, np.where(missing, 0.0, self.columns.per_column(values, {}))


def newest_values(
    pasts: Sequence[Series],
    count: int,
    span: int,
    longest: int,
    read: Callable[[Sequence[Series], Sequence[Columns], int], History],
) -> Newest:
    """The `count` newest values of each series, with the histories that they are predicted from.

    Args:
        span: steps that the model reads before an origin.
        longest: the most steps that a value may be ahead of its origin; others are not scored.
        read: encodes histories, the columns of the steps ahead of each, and how many these are.

    Raises:
        InvalidInput: if a series is too short.
    """
    lasts, leads = zip(*(_origins(one, count, span, longest) for one in pasts), strict=True)
    steps = max(1, *(int(part.max()) for part in leads))
    each = [(one, last) for one, of in zip(pasts, lasts, strict=True) for last in of.tolist()]
    rows = [np.minimum(last + 1 + np.arange(steps), len(one) - 1) for one, last in each]
    history = read(
        [one.until(last + 1) for one, last in each],
        [select_rows(one.columns, at) for (one, _), at in zip(each, rows, strict=True)],
        steps,
    )
    device = history.past.device
    return Newest(
        count,
        history,
        torch.from_numpy(np.concatenate(leads).astype(np.int64)).to(device),
        torch.from_numpy(np.concatenate([one.values[-count:] for one in pasts])).to(device),
        np.concatenate([one.times[-count:] for one in pasts]),
    )


def _origins(
    one: Series, count: int, span: int, longest: int
) -> tuple[Int64[np.ndarray, "newest"], Int64[np.ndarray, "newest"]]:
    """The last known step before each newest value, and how many steps after it the value is.

    A value that is not scored has the last step of the series, whose past can be read, and 0.
    """
    if len(one) < span + count:
        of_series = "" if one.key is None else f" of {one.key!r}"
        raise InvalidInput(
            f"the history{of_series} has {len(one)} steps; to score the newest {count} this model "
            f"reads {span} before each: give {span + count} steps, or score fewer",
            "/anomalies",
        )
    known = ~np.isnan(one.values)
    before = np.maximum.accumulate(np.where(known, np.arange(len(one)), -1))  # −1 without one
    firsts = np.arange(len(one) - count, len(one))
    lasts = before[firsts - 1]
    can_be_read = (lasts >= span - 1) & readable(one.values, span)[np.maximum(lasts - span + 1, 0)]
    is_scored = known[firsts] & can_be_read & (firsts - lasts <= longest)
    return np.where(is_scored, lasts, len(one) - 1), np.where(is_scored, firsts - lasts, 0)


def score_newest(newest: Newest, forecast: Forecast, rate: float) -> dict[str, np.ndarray]:
    """The answer about anomalies.

    Args:
        forecast: from all histories of `newest`.
        rate: false alarms among usual values.
    """
    horizon = newest.history.horizon
    p = two_sided(forecast, newest.values.repeat_interleave(horizon)).unflatten(0, (-1, horizon))
    p = p.gather(1, (newest.leads - 1).clamp_min(0).unsqueeze(1)).squeeze(1)
    p = torch.where(newest.leads > 0, p, math.nan).unflatten(0, (-1, newest.count))
    joint = jointly(p)
    found = {
        "value": newest.values.unflatten(0, (-1, newest.count)),
        "p_value": p,
        "surprise": -torch.log2(p),
        "flagged": p < rate,
        "joint_p_value": joint,
        "joint_flagged": joint < rate,
    }
    times = newest.times.reshape(-1, newest.count)
    return {"time": times} | {name: values.cpu().numpy() for name, values in found.items()}


def two_sided(forecast: Forecast, values: Float64[Tensor, "steps"]) -> Float64[Tensor, "steps"]:
    """min(1, 2 min(P(Y ≤ y), P(Y ≥ y))) of every step. Both tails are computed without subtraction
    from 1.
    """
    y = values.to(forecast.draws)
    below = torch.nextafter(y, torch.full_like(y, -math.inf))
    at_least = forecast.of_y.survival(below.unsqueeze(0)).squeeze(0)
    return (2 * torch.minimum(forecast.of_y.cdf(y), at_least)).clamp(0, 1)


def jointly(p: Float64[Tensor, "series newest"]) -> Float64[Tensor, "series"]:
    """P(χ²_{2N} ≥ −2 Σ ln p) over the N values that are scored; NaN if there is none."""
    known = ~p.isnan()
    total, count = -torch.where(known, p, 1.0).log().sum(1), known.sum(1)
    tail = torch.special.gammaincc(count.clamp_min(1).to(total), total)
    return torch.where(count > 0, tail, math.nan)
