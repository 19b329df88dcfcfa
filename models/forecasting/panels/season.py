"""Finds the seasons of series: the calendar's, if the values have them."""

import math
from collections.abc import Sequence

import numpy as np

from models.forecasting.histories.filling import fill
from models.forecasting.series import Series
from models.forecasting.spacing import Spacing

_ASKED = 1_000  # series, evenly spread: the majority of these is that of all


def find_seasons(series: Sequence[Series], spacing: Spacing) -> tuple[int, ...]:
    """The calendar's seasons that most of these series have, or (1,): some are asked.

    A week must show in the changes from day to day, in which the day's own pattern is no more.
    """
    season, *longer = spacing.seasons
    some = series[:: -(-len(series) // _ASKED)]
    if any(_most(some, one, season) for one in longer):
        return spacing.seasons
    return (season,) if season > 1 and _most(some, season, 1) else (1,)


def _most(series: Sequence[Series], season: int, apart: int) -> bool:
    return float(np.mean([is_seasonal(one.values, season, apart) for one in series])) > 0.5


def is_seasonal(values: np.ndarray, season: int, apart: int = 1) -> bool:
    """Whether changes from one step to another are correlated with those a season before.

    The autocorrelation r_s must exceed 1.645 √((1 + 2 Σ_{i<s} r_i²)/n), the 90 % bound for a
    moving average without r_s (Bartlett 1946). Makridakis et al. 2020 test the values in this way
    in the M4 competition; with changes a trend is not mistaken for a season.

    Args:
        apart: the number of steps from one to the other.
    """
    values = fill(values, season=1)  # by lines, which have no season
    values = values[~np.isnan(values)]
    changes = values[apart:] - values[:-apart]
    if len(changes) < 3 * season or changes.std() == 0:
        return False
    centred = changes - changes.mean()
    lags = [centred[lag:] @ centred[:-lag] / (centred @ centred) for lag in range(1, season + 1)]
    bound = 1.645 * math.sqrt((1 + 2 * sum(r**2 for r in lags[:-1])) / len(changes))
    return bool(lags[-1] > bound)
