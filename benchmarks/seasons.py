"""Simulated hourly series with a day and a week, beside classical methods and one season alone.

    python -m benchmarks.seasons [--only NAME …] [--weeks 7] [--set JSON] [--file FILE]

Twelve series, each simulated anew by its own rule: added and multiplied patterns, weekends of
another shape, counts, drifting levels and patterns, heavy tails, a day alone, neither. The last two
days are forecast from four origins, 37 hours apart so that they begin at unlike hours. Ours is
trained once before the first of them by the recommended recipe, told the day alone, both seasons,
or nothing. The peers (statsforecast) are fitted again at each origin: AutoETS with the day, MSTL
with both, and last week's values. The CRPS is twice the mean pinball loss at eleven levels, divided
by the mean change from the week before. Each result is a line of FILE; an interrupted run resumes.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

from benchmarks import results
from benchmarks.series import SAMPLES, Case, digest, fit_recipe, read_lines
from benchmarks.series_scores import (
    Json,
    Quantiles,
    answer_quantiles,
    geometric_mean,
    scores,
)
from benchmarks.table_scores import LEVELS
from models.prediction.options import PredictOptions

DAY, WEEK = 24, 168
HORIZON, ORIGINS, APART = 48, 4, 37
TOLD: dict[str, Json] = {
    "day": {"season": DAY},
    "day, week": {"season": [DAY, WEEK]},
    "nothing": {},
}
PEERS = ("AutoETS, day", "MSTL, day, week", "last week")
TYPES = {"time": "datetime", "y": "number"}

Steps = Float[np.ndarray, "steps"]


def simulate(name: str, steps: int) -> Steps:
    """A series of so many hours, from a Monday on."""
    random = np.random.default_rng(list(RULES).index(name))
    return np.asarray(RULES[name](random, np.arange(steps)), float)


def _shape(random: np.random.Generator, t: np.ndarray, length: int, waves: int) -> Steps:
    """A random smooth pattern of unit variance."""
    k = np.arange(1, waves + 1)
    size, phase = random.normal(size=waves) / k, 2 * np.pi * random.random(waves)
    found = (size * np.cos(2 * np.pi * np.outer(t, k) / length + phase)).sum(1)
    return np.asarray(found / np.sqrt((size**2).sum() / 2))


def _weekday(random: np.random.Generator, t: np.ndarray) -> Steps:
    """A level of each day of the week, of unit variance."""
    levels = random.normal(size=7)
    return np.asarray(((levels - levels.mean()) / levels.std())[t // DAY % 7])


def _weekend(t: np.ndarray) -> np.ndarray:
    return t // DAY % 7 >= 5


def _recursion(noise: Steps, phi: float) -> Steps:
    found = np.zeros(len(noise))
    for i, one in enumerate(noise):
        found[i] = phi * found[i - 1] + one if i else one
    return found


def _added(r: np.random.Generator, t: np.ndarray) -> Steps:
    return 50 + 5 * _shape(r, t, DAY, 4) + 5 * _weekday(r, t) + r.normal(size=len(t))


def _noisy(r: np.random.Generator, t: np.ndarray) -> Steps:
    return 50 + 2 * _shape(r, t, DAY, 3) + 2 * _weekday(r, t) + 4 * r.normal(size=len(t))


def _multiplied(r: np.random.Generator, t: np.ndarray) -> Steps:
    pattern = 0.4 * _shape(r, t, DAY, 4) + 0.3 * _weekday(r, t)
    return np.exp(5 + pattern + 0.05 * _recursion(r.normal(size=len(t)), 0.7))


def _other_weekends(r: np.random.Generator, t: np.ndarray) -> Steps:
    work, free = _shape(r, t, DAY, 6), _shape(r, t, DAY, 3)
    noise = 0.5 * _recursion(r.normal(size=len(t)), 0.8)
    return 30 + 4 * np.where(_weekend(t), 0.5 * free - 1, work) + noise


def _office(r: np.random.Generator, t: np.ndarray) -> Steps:
    is_open = (t % DAY >= 8) & (t % DAY < 18) & ~_weekend(t)
    return 10 + 25 * is_open + _recursion(r.normal(size=len(t)), 0.6)


def _counts(r: np.random.Generator, t: np.ndarray) -> Steps:
    return r.poisson(np.exp(1.5 + 0.7 * _shape(r, t, DAY, 3) + 0.4 * _weekday(r, t)))


def _few(r: np.random.Generator, t: np.ndarray) -> Steps:
    return r.poisson(np.exp(-1 + 0.7 * _shape(r, t, DAY, 2) + 0.5 * _weekday(r, t)))


def _wandering(r: np.random.Generator, t: np.ndarray) -> Steps:
    level = np.cumsum(0.5 * r.normal(size=len(t)))
    return 100 + level + 5 * _shape(r, t, DAY, 4) + 3 * _weekday(r, t)


def _changing(r: np.random.Generator, t: np.ndarray) -> Steps:
    share = t / len(t)
    day = (1 - share) * _shape(r, t, DAY, 4) + share * _shape(r, t, DAY, 4)
    return 50 + 5 * day + 4 * _weekday(r, t) + _recursion(r.normal(size=len(t)), 0.5)


def _heavy(r: np.random.Generator, t: np.ndarray) -> Steps:
    return 50 + 5 * _shape(r, t, DAY, 4) + 5 * _weekday(r, t) + r.standard_t(3, size=len(t))


def _day_alone(r: np.random.Generator, t: np.ndarray) -> Steps:
    return 20 + 4 * _shape(r, t, DAY, 4) + _recursion(r.normal(size=len(t)), 0.8)


def _neither(r: np.random.Generator, t: np.ndarray) -> Steps:
    return 20 + _recursion(r.normal(size=len(t)), 0.95)


RULES: dict[str, Callable[[np.random.Generator, np.ndarray], Steps]] = {
    "added": _added,
    "noisy": _noisy,
    "multiplied": _multiplied,
    "other weekends": _other_weekends,
    "office hours": _office,
    "counts": _counts,
    "few counts": _few,
    "wandering level": _wandering,
    "changing day": _changing,
    "heavy tails": _heavy,
    "a day alone": _day_alone,
    "neither": _neither,
}


def case(name: str, weeks: int) -> Case:
    """A simulated series and its origins."""
    values = simulate(name, WEEK * weeks)
    times = pd.date_range("2024-01-01", periods=len(values), freq="h")
    last = len(values) - HORIZON
    origins = tuple(last - APART * k for k in reversed(range(ORIGINS)))
    return Case(name, WEEK, HORIZON, pd.DataFrame({"time": times, "y": values}), origins)


def our_scores(one: Case, told: Json, settings: Json) -> Json:
    """Of one training; the seconds that it took, and the seasons that it read."""
    columns = {"time": one.frame["time"].to_numpy("datetime64[us]"), "y": one.values}

    def until(step: int) -> Json:
        return {name: values[:step] for name, values in columns.items()}

    started = time.process_time()
    forecast = {"time": "time", "horizon": HORIZON} | told
    model = fit_recipe(until(one.origins[0]), TYPES, {"forecast": forecast} | settings)
    seconds = round(time.process_time() - started, 1)
    options = PredictOptions(samples=SAMPLES, horizon=HORIZON, intervals=LEVELS)
    answers = [answer_quantiles(model.predict(until(o), options)) for o in one.origins]
    found = scores(one.truth(), np.concatenate(answers), one.scale)
    return found | {"seconds": seconds, "season": model.forecast.season}


def peer_scores(one: Case, label: str) -> Json:
    """Of a class of statsforecast, fitted again at each origin."""
    found = [_peer(label, one.values[:o]) for o in one.origins]
    return scores(one.truth(), np.concatenate(found), one.scale)


def _peer(label: str, past: Steps) -> Quantiles:
    from statsforecast import models  # noqa: PLC0415

    made = {
        "AutoETS, day": lambda: models.AutoETS(season_length=DAY),
        "MSTL, day, week": lambda: models.MSTL(
            [DAY, WEEK], trend_forecaster=models.AutoETS(model="ZZN")
        ),
        "last week": lambda: models.SeasonalNaive(WEEK),
    }
    levels = [round(100 * level) for level in LEVELS]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = made[label]().forecast(y=past, h=HORIZON, level=levels)
    low = [found[f"lo-{level}"] for level in reversed(levels)]
    high = [found[f"hi-{level}"] for level in levels]
    return np.stack([*low, found["mean"], *high], axis=1)


def methods(one: Case, settings: Json) -> dict[str, Callable[[], Json]]:
    """What each method reaches on a series, as a function."""
    ours = {
        f"ours, told {name}": lambda told=told: our_scores(one, told, settings)
        for name, told in TOLD.items()
    }
    return ours | {name: lambda name=name: peer_scores(one, name) for name in PEERS}


def report(names: list[str], lines: list[Json]) -> str:
    """A row per series, and geometric means."""
    found = {(x["series"], x["method"]): x for x in lines}
    order = [*(f"ours, told {name}" for name in TOLD), *PEERS]
    order = [m for m in order if all((n, m) in found for n in names)]
    rows = [
        [n, *(f"{found[n, m]['scaled_crps']:.3f} ({found[n, m]['cover90']:.0%})" for m in order)]
        for n in names
    ]
    last = ["geometric mean; mean cover"]
    for m in order:
        crps = geometric_mean([found[n, m]["scaled_crps"] for n in names])
        last.append(f"{crps:.3f} ({np.mean([found[n, m]['cover90'] for n in names]):.1%})")
    return results.markdown(["scaled CRPS (90 % covers)", *order], [*rows, last])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(RULES), default=list(RULES))
    parser.add_argument("--methods", nargs="+", help="default: all")
    parser.add_argument("--weeks", type=int, default=7)
    parser.add_argument("--set", type=json.loads, default={}, help="settings of a model, as JSON")
    parser.add_argument("--file", type=Path, help="of the results; default: in benchmarks/results")
    given = parser.parse_args()
    size = {"weeks": given.weeks, "settings": given.set}
    file = given.file or results.RESULTS / f"seasons-{digest(size)}.jsonl"
    done = {(line["series"], line["method"]) for line in read_lines(file)}
    file.parent.mkdir(parents=True, exist_ok=True)
    for name in given.only:
        for method, measure in methods(case(name, given.weeks), given.set).items():
            if (name, method) in done or (given.methods and method not in given.methods):
                continue
            line = {"series": name, "method": method, **measure()}
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(line | {"commit": results.machine()["commit"]}) + "\n")
            print(json.dumps(line), flush=True)
    print(report(given.only, read_lines(file)))


if __name__ == "__main__":
    main()
