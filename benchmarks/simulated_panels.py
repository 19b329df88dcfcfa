"""Simulated panels, learned as one model, beside classical methods on a sample of the series.

    python -m benchmarks.simulated_panels [--kinds trend intermittent] [--series 1000]
                                          [--steps 120] [--set JSON] [--file FILE]

`trend`: months; each series has a level, growth, a yearly shape and noise of its own, all
multiplied. `intermittent`: days on which nothing is sold at all, most of them, and others with
Poisson counts that follow the weekday. The methods (statsforecast) are those that the worker adds
to every version, at the same held-out origins (`worker.baselines.series`). Each panel is a line of
FILE; an interrupted run resumes after its last one.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.series import digest, fit_recipe, read_lines
from models.features.columns import Columns
from worker.baselines.series import with_series_baselines

KINDS = {"trend": 12, "intermittent": 7}  # and their seasons
TYPES = {"time": "datetime", "y": "number", "key": "category"}

Json = dict[str, Any]


def simulate(kind: str, series: int, steps: int, seed: int = 0) -> Columns:
    """The columns of a panel: time, y and key, series by series."""
    random, t = np.random.default_rng(seed), np.arange(steps)
    values, unit = _VALUES[kind](random, series, t)
    times = (np.datetime64("2010-01", unit) + t).astype("datetime64[us]")
    keys = np.array([f"{i:06d}" for i in range(series)], dtype=object)
    return {"time": np.tile(times, series), "y": values.ravel(), "key": np.repeat(keys, steps)}


def _trends(random: np.random.Generator, series: int, t: np.ndarray) -> tuple[np.ndarray, str]:
    each = (series, 1)
    level, growth = 5 + random.normal(size=each), 0.005 * random.normal(size=each)
    shape = random.uniform(0, 0.4, each) * np.sin(2 * np.pi * (t / 12 + random.random(each)))
    noise = random.uniform(0.02, 0.2, each) * random.normal(size=(series, len(t)))
    return np.exp(level + growth * t + shape + noise), "M"


def _counts(random: np.random.Generator, series: int, t: np.ndarray) -> tuple[np.ndarray, str]:
    each = (series, 1)
    weekday = 1 + random.uniform(0, 0.8, each) * np.sin(2 * np.pi * (t / 7 + random.random(each)))
    sells = random.random((series, len(t))) < random.uniform(0.1, 0.5, each)
    counts = 1 + random.poisson(random.gamma(2, 1, each) * weekday)
    return np.where(sells, counts, 0).astype(float), "D"


_VALUES = {"trend": _trends, "intermittent": _counts}


def measure(kind: str, series: int, steps: int, settings: Json) -> Json:
    """Train one model on a panel, and compare it."""
    columns, season = simulate(kind, series, steps), KINDS[kind]
    forecast = {"time": "time", "key": "key", "season": season, "horizon": 2 * season}
    started = time.perf_counter()
    model = fit_recipe(columns, TYPES, {"forecast": forecast} | settings)
    seconds = round(time.perf_counter() - started, 1)
    compared = with_series_baselines(model, columns, lambda: False)
    metrics = compared.variants_by_prune[0.0].metrics
    names = ("scaled_crps", "coverage", "origins", "series", "standard_errors")
    found = {name: metrics[name] for name in names}
    return found | {"seconds": seconds, "baselines": metrics["baselines"]}


def report(lines: list[Json]) -> str:
    """A row per panel and method: both sides at the same origins, and the difference."""
    headers = [
        *("panel", "method", "origins", "series", "scaled CRPS", "ours", "90 % covers", "ours"),
        *("ours is better by (CRPS)", "verdict"),
    ]
    rows = []
    for line in lines:
        for name, one in line["baselines"].items():
            own = one.get("this_model", line)
            crps, covers = (
                [side["scaled_crps"] for side in (one, own)],
                [side["coverage"]["0.9"] for side in (one, own)],
            )
            difference = f"{one['advantage']:.3g} ± {one['advantage_error']:.2g}"
            rows.append(
                [line["panel"], name, one["origins"], one["series"]]
                + [f"{value:.3f}" for value in crps]
                + [f"{value:.0%}" for value in covers]
                + [difference, one["verdict"]]
            )
    return results.markdown(headers, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--series", type=int, default=1_000)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--set", type=json.loads, default={}, help="settings of a model, as JSON")
    parser.add_argument("--file", type=Path, help="of the results; default: in benchmarks/results")
    given = parser.parse_args()
    size = {"series": given.series, "steps": given.steps, "settings": given.set}
    file = given.file or results.RESULTS / f"panels-{digest(size)}.jsonl"
    done = {line["panel"] for line in read_lines(file)}
    file.parent.mkdir(parents=True, exist_ok=True)
    for kind in given.kinds:
        if kind not in done:
            line = {"panel": kind, **measure(kind, given.series, given.steps, given.set)}
            line |= {"commit": results.machine()["commit"]}
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(line) + "\n")
    print(report([line for line in read_lines(file) if line["panel"] in given.kinds]))


if __name__ == "__main__":
    main()
