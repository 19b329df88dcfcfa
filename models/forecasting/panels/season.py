"""Finds the season of series: the calendar's, if the values have it."""

import math
from collections.abc import Sequence

import numpy as np

from models.forecasting.histories.filling import fill
from models.forecasting.series import Series
from models.forecasting.spacing import Spacing

_ASKED = 1_000  # series, evenly spread: the majority of these is that of all


def find_season(series: Sequence[Series], spacing: Spacing) -> int:
    """The calendar's season if most of these series have it, otherwise 1: some are asked."""
    season = spacing.season
    some = series[:: -(-len(series) // _ASKED)]
    alike = [is_seasonal(one.values, season) for one in some]
    return season if season > 1 and np.mean(alike) > 0.5 else 1


def is_seasonal(values: np.ndarray, season: int) -> bool:
    """Whether changes from step to step are correlated with those a season before.

    The autocorrelation r_s must exceed 1.645 √((1 + 2 Σ_{i<s} r_i²)/n), the 90 % bound for a
    moving average without r_s (Bartlett 1946). Makridakis et al. 2020 test the values in this way
    in the M4 competition; with changes a trend is not mistaken for a season.
    """
    values = fill(values, season=1)  # by lines, which have no season
    changes = np.diff(values[~np.isnan(values)])
    if len(changes) < 3 * season or changes.std() == 0:
        return False
    centred = changes - changes.mean()
    lags = [centred[lag:] @ centred[:-lag] / (centred @ centred) for lag in range(1, season + 1)]
    bound = 1.645 * math.sqrt((1 + 2 * sum(r**2 for r in lags[:-1])) / len(changes))
    return bool(lags[-1] > bound)
