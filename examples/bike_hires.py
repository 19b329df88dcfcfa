"""The dashboard's example data: simulated hires of bicycles per hour, over eight weeks; seeded.

    python -m examples.bike_hires > app/ui/static/examples/bike-hires.csv

Busy hours vary more than quiet ones: this is noise, which more data do not reduce. No hour is
warmer than 26 °C: a model cannot know the demand above. Some measurements of wind are missing.
"""

import math
from collections.abc import Iterator

import numpy as np

WEEKS = 8
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HEADER = "hour,weekday,temperature,wind,hires"


def rows() -> Iterator[str]:
    """A line of CSV per hour."""
    random = np.random.default_rng(7)
    front = 0.0  # deviation from the usual temperature, which lasts some hours
    for hour in range(WEEKS * 7 * 24):
        day, clock = DAYS[hour // 24 % 7], hour % 24
        front = 0.97 * front + random.normal(0, 0.8)
        temperature = 14 + 5 * math.sin((clock - 9) / 24 * 2 * math.pi) + front
        wind = random.gamma(3.0, 1.5)
        expected = _expected(day, clock, temperature, wind)
        hires = random.negative_binomial(30, 30 / (30 + expected))
        wind_text = "" if random.random() < 0.04 else f"{wind:.1f}"
        yield f"{clock},{day},{temperature:.1f},{wind_text},{hires}"


def _expected(day: str, clock: int, temperature: float, wind: float) -> float:
    """Mean hires: peaks at 8:00 and 17:30 on working days, one wide peak at weekends.

    Warm and calm weather increases them.
    """
    if day in ("Sat", "Sun"):
        demand = 90 * math.exp(-(((clock - 14) / 5) ** 2))
    else:
        demand = 100 * math.exp(-(((clock - 8) / 3) ** 2))
        demand += 120 * math.exp(-(((clock - 17.5) / 3.5) ** 2))
    return (8 + demand) * math.exp(0.05 * (temperature - 14) - 0.06 * (wind - 4.5))


if __name__ == "__main__":
    print(HEADER, *rows(), sep="\n")
