"""The classical models that are tried for a series, by its seasons and length."""

from collections.abc import Sequence
from dataclasses import replace

from models.forecasting.classics.autoregression import Autoregression
from models.forecasting.classics.smoothing import Smoothing

_MOST_LAGS, _STEPS_PER_LAG = 12, 10
_LEAST_LAGS = 4
_FINE = 167  # waves: all of a week of hours


def candidates(
    seasons: Sequence[int], shortest: int, longest: int
) -> tuple[Smoothing | Autoregression, ...]:
    """
    Args:
        seasons: the shortest first.
        shortest, longest: steps of the histories that they are fitted to.
    """
    known = [one for one in seasons if _repeats(one, longest)] or [1]
    lengths = (1, known[0]) if known[0] > 1 else (1,)
    smooth = [Smoothing(t, s) for s in lengths for t in ("none", "drift", "damped")]
    return (*smooth, *_autoregressions(known, shortest, longest))


def _repeats(season: int, steps: int) -> bool:
    """Whether the longest history has a season; a forecast is mostly from a longer one."""
    return 1 < season <= steps


def _autoregressions(seasons: Sequence[int], shortest: int, longest: int) -> list[Autoregression]:
    *others, season = seasons
    short = range(1, 1 + max(_LEAST_LAGS, min(_MOST_LAGS, longest // _STEPS_PER_LAG)))
    far = {s + k for s in seasons if s > 1 for k in (-1, 0, 1, s, s + 1)}
    lags = tuple(sorted(lag for lag in {*short, *far} if 0 < lag <= max(1, shortest // 3)))
    one = Autoregression(lags, season, shorter=tuple(others))
    found = [replace(one, changes=c) for c in (False, True)]
    if season == 1:
        return [*found, Autoregression((), changes=True)]
    found += [replace(one, changes=c, has_phases=True) for c in (False, True)]
    if others:
        found.append(replace(one, has_phases=True, waves=_FINE))
    for apart in (None, *others):
        over = replace(one, seasonal_changes=True, apart=apart)
        found += [over, replace(over, changes=True), replace(over, lags=())]
    return found
