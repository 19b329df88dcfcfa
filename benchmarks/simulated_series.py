"""Simulated series of which effects of covariates or holidays are known."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from core.calendars import calendar
from models.features.columns import Columns

Steps = Float[np.ndarray, "steps"]
COUNTRY = "DE"


@dataclass(frozen=True)
class Simulated:
    """A series y = g⁻¹(effect + all else), where g is the logarithm or nothing.

    Args:
        covariates: the columns beside time and y.
        effect: of covariates and holidays, on the scale of g.
        neutral: the value of each covariate that has no effect.
    """

    times: np.ndarray
    values: Steps
    covariates: Columns
    effect: Steps
    season: int
    horizon: int
    is_log: bool = False
    has_holidays: bool = False
    neutral: float | str = 0.0


Random = np.random.Generator


def _of(unit: str, count: int, first: str = "2015-01-05") -> np.ndarray:
    start = np.datetime64(first, unit)
    return (start + np.arange(count)).astype("datetime64[us]")


def _wave(count: int, season: float, size: float) -> Steps:
    return size * np.sin(2 * np.pi * np.arange(count) / season)


def _slow(random: Random, count: int, share: float) -> Steps:
    """An autoregression with variance 1."""
    noise, found = random.normal(size=count), np.zeros(count)
    for t in range(1, count):
        found[t] = share * found[t - 1] + (1 - share**2) ** 0.5 * noise[t]
    return found


def _sales(random: Random, effect: Steps, noise: float = 0.05) -> Steps:
    """Logarithms of monthly sales, with a trend and a season."""
    n = len(effect)
    moved = 0.02 * random.normal(size=n).cumsum() + 0.004 * np.arange(n)
    return np.exp(5 + moved + _wave(n, 12, 0.2) + effect + noise * random.normal(size=n))


def _price(random: Random, elasticity: float, steps: int = 132) -> Simulated:
    price = np.exp(0.1 * _slow(random, steps, 0.5) + 0.15 * (random.random(steps) < 0.15))
    effect = elasticity * np.log(price)
    times = _of("M", steps)
    values = _sales(random, effect)
    return Simulated(times, values, {"price": price}, effect, 12, 12, is_log=True, neutral=1.0)


def _noise(random: Random, steps: int = 132) -> Simulated:
    covariates: Columns = {f"x{k}": random.normal(size=steps) for k in range(6)}
    effect = np.zeros(steps)
    return Simulated(_of("M", steps), _sales(random, effect), covariates, effect, 12, 12, True)


def _walks(random: Random, steps: int = 200) -> Simulated:
    """Two walks that have nothing to do with each other."""
    values, x = random.normal(size=(2, steps)).cumsum(1)
    return Simulated(_of("W", steps), values, {"x": x}, np.zeros(steps), 1, 8)


def _temperature(random: Random, steps: int = 500) -> Simulated:
    """Days of a load that falls with the temperature."""
    warm = 10 + _wave(steps, 365.25, 8) + 3 * _slow(random, steps, 0.8)
    effect, week = -1.5 * warm, np.tile([0, 0, 0, 0, -2, -12, -15], steps)[:steps]
    rest = 200 + week + 4 * _slow(random, steps, 0.7)
    return Simulated(_of("D", steps), rest + effect, {"temperature": warm}, effect, 7, 14)


def _curve(random: Random, steps: int = 600) -> Simulated:
    """Days of a load that rises with heat and with cold: no line."""
    warm = 15 + _wave(steps, 365.25, 10) + 3 * _slow(random, steps, 0.8)
    effect = 0.15 * (warm - 15) ** 2
    rest = 100 + 4 * _slow(random, steps, 0.7)
    columns: Columns = {"temperature": warm}
    return Simulated(_of("D", steps), rest + effect, columns, effect, 7, 14, neutral=15.0)


def _promotions(random: Random, share: float, unit: str, steps: int, season: int) -> Simulated:
    on = (random.random(steps) < share).astype(float)
    effect = 0.5 * on
    level = 4 + 0.03 * random.normal(size=steps).cumsum() + _wave(steps, season, 0.2 * (season > 1))
    values = np.exp(level + effect + 0.1 * random.normal(size=steps))
    return Simulated(
        _of(unit, steps), values, {"promotion": on}, effect, season, 2 * max(season, 4), True
    )


def _campaigns(random: Random, steps: int = 208) -> Simulated:
    """Weeks of four kinds of campaigns."""
    kinds = np.array(["none", "post", "radio", "screens"], dtype=object)
    chosen = random.choice(4, steps, p=[0.55, 0.15, 0.15, 0.15])
    effect = np.array([0.0, 6.0, 12.0, 24.0])[chosen]
    values = 100 + random.normal(size=steps).cumsum() + 3 * random.normal(size=steps) + effect
    columns: Columns = {"campaign": kinds[chosen]}
    return Simulated(_of("W", steps), values, columns, effect, 1, 8, neutral="none")


def _days_off(random: Random, size: float, steps: int = 1_200) -> Simulated:
    """Days with a week, and holidays."""
    times = _of("D", steps, "2021-01-04")
    days = np.isin(times.astype("datetime64[D]").astype(int), calendar(COUNTRY, 2021, 2025).days)
    effect = size * days
    week = np.tile([0.0, 0.05, 0.05, 0.1, 0.2, 0.3, -0.3], steps)[:steps]
    values = np.exp(6 + week + 0.1 * _slow(random, steps, 0.9) + effect)
    values *= np.exp(0.08 * random.normal(size=steps))
    return Simulated(times, values, {}, effect, 7, 28, True, True)


def _months_off(random: Random, steps: int = 144) -> Simulated:
    """Months that lose four hundredths with each holiday."""
    times = _of("M", steps, "2010-01")
    months = np.array(calendar(COUNTRY, 2010, 2022).days).astype("datetime64[D]")
    at = months.astype("datetime64[M]").astype(int) - times[0].astype("datetime64[M]").astype(int)
    effect = -0.04 * np.bincount(at, minlength=steps)[:steps]
    return Simulated(times, _sales(random, effect, 0.03), {}, effect, 12, 12, True, True)


def _short(random: Random, steps: int = 40) -> Simulated:
    """Years of a value that moves with another, and by itself."""
    x = random.normal(size=steps).cumsum()
    effect = 2.0 * x
    values = 50 + random.normal(size=steps).cumsum() + effect
    return Simulated(_of("Y", steps, "1970"), values, {"x": x}, effect, 1, 4)


CASES: dict[str, Callable[[Random], Simulated]] = {
    "price, strong": lambda random: _price(random, -1.5),
    "price, weak": lambda random: _price(random, -0.2),
    "six of noise": _noise,
    "two walks": _walks,
    "temperature": _temperature,
    "heat and cold": _curve,
    "promotions, weekly": lambda random: _promotions(random, 0.1, "W", 156, 1),
    "promotions, rare": lambda random: _promotions(random, 0.03, "D", 500, 7),
    "campaigns": _campaigns,
    "holidays": lambda random: _days_off(random, -0.8),
    "holidays, weak": lambda random: _days_off(random, -0.1),
    "holidays of months": _months_off,
    "short": _short,
}
