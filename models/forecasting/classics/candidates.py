"""The classical models that are tried for a series, by its season and length."""

from models.forecasting.classics.autoregression import Autoregression
from models.forecasting.classics.smoothing import Smoothing

_MOST_LAGS, _STEPS_PER_LAG = 12, 10
_LEAST_LAGS = 4


def candidates(season: int, shortest: int, longest: int) -> tuple[Smoothing | Autoregression, ...]:
    """
    Args:
        shortest, longest: steps of the histories that they are fitted to.
    """
    seasons = (1, season) if _repeats(season, longest) else (1,)
    smooth = [Smoothing(t, s) for s in seasons for t in ("none", "drift", "damped")]
    return (*smooth, *_autoregressions(seasons[-1], shortest, longest))


def _repeats(season: int, steps: int) -> bool:
    """Whether the longest history has a season; a forecast is mostly from a longer one."""
    return 1 < season <= steps


def _autoregressions(season: int, shortest: int, longest: int) -> list[Autoregression]:
    short = range(1, 1 + max(_LEAST_LAGS, min(_MOST_LAGS, longest // _STEPS_PER_LAG)))
    far = (season - 1, season, season + 1, 2 * season, 2 * season + 1) if season > 1 else ()
    lags = tuple(sorted(lag for lag in {*short, *far} if 0 < lag <= max(1, shortest // 3)))
    found = [Autoregression(lags, season, changes=c) for c in (False, True)]
    if season == 1:
        return [*found, Autoregression((), changes=True)]
    found += [Autoregression(lags, season, changes=c, has_phases=True) for c in (False, True)]
    found += [Autoregression(lags, season, changes=c, seasonal_changes=True) for c in (False, True)]
    return [*found, Autoregression((), season, seasonal_changes=True)]
