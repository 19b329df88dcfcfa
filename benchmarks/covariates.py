"""Simulated series with covariates and holidays, beside AutoARIMA that reads them and does not.

    python -m benchmarks.covariates [--only NAME …] [--seeds 1] [--file FILE] [--summary]

Thirteen unlike series (`benchmarks.simulated_series`): effects that are strong, weak, none and
curved, of prices, temperatures, promotions, levels and holidays, beside seasons, trends and walks.
The last four stretches are forecast, each from all before it, as in `benchmarks.series`: by the
recipe, by the same without covariates, by the network alone, and by AutoARIMA (statsforecast) with
the covariates and without. `effect` is the share of the true effect that is recovered: the forecast
with the true covariates ahead less that with neutral ones, regressed on the truth. Each result is a
line of FILE; an interrupted run resumes after its last one.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks import results
from benchmarks.series import SAMPLES, fit_recipe, read_lines
from benchmarks.series_scores import (
    Json,
    Quantiles,
    answer_quantiles,
    geometric_mean,
    naive_error,
    scores,
)
from benchmarks.simulated_series import CASES, COUNTRY, Simulated
from benchmarks.table_scores import LEVELS
from models.features.columns import Columns
from models.forecasting.holidays import Holidays
from models.forecasting.model import Forecaster
from models.prediction.options import PredictOptions

ORIGINS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--file", type=Path, default=results.RESULTS / "covariates.jsonl")
    parser.add_argument("--summary", action="store_true", help="print stored results, run nothing")
    given = parser.parse_args()
    given.file.parent.mkdir(parents=True, exist_ok=True)
    if not given.summary:
        run(given)
    print(report(read_lines(given.file), given.only))


def run(given: argparse.Namespace) -> None:
    """Measure what the file does not have, and add it."""
    done = {(x["series"], x["method"], x["seed"]) for x in read_lines(given.file)}
    for seed in range(given.seeds):
        for name in given.only:
            case = CASES[name](np.random.default_rng(seed))
            for method in given.methods:
                if (name, method, seed) in done:
                    continue
                started = time.perf_counter()
                line = {"series": name, "method": method, "seed": seed, **METHODS[method](case)}
                line |= {"seconds": round(time.perf_counter() - started, 1)}
                line |= {"commit": results.machine()["commit"]}
                with given.file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(line) + "\n")
                print(json.dumps(line), flush=True)


def ours(case: Simulated, *, reads: bool = True, classics: bool = True) -> Json:
    """Of one training before the first origin."""
    covariates = case.covariates if reads else {}
    columns = {"time": case.times, "y": case.values, **covariates}
    types = {"time": "datetime", "y": "number"} | {n: _type(v) for n, v in covariates.items()}
    season = {"season": case.season} if case.season > 1 else {}
    forecast: Json = {"time": "time", "horizon": case.horizon, "classics": classics, **season}
    if reads and case.has_holidays:
        forecast["holidays"] = COUNTRY
    features = [{"name": name, "type": types[name]} for name in covariates]
    settings: Json = {"forecast": forecast, "features": features, "pruning": []}
    model = fit_recipe(_rows(columns, 0, origins(case)[0]), types, settings)
    options = PredictOptions(samples=SAMPLES, horizon=case.horizon, intervals=LEVELS)
    quantiles, shares = [], []
    for origin in origins(case):
        past = _rows(columns, 0, origin)
        ahead = _rows(covariates, origin, origin + case.horizon) if covariates else None
        answer = model.predict(past, options, ahead)
        quantiles.append(answer_quantiles(answer))
        if reads and case.effect.any():
            shares.append((answer.median, _neutral(model, case, past, options)))
    return _scored(case, quantiles) | {"effect": _recovered(case, shares)} | _told(model)


def _neutral(
    model: Forecaster, case: Simulated, past: Columns, options: PredictOptions
) -> np.ndarray:
    """The median forecast if the covariates ahead have no effect, and no holiday is ahead."""
    ahead = {
        name: np.repeat(np.array([case.neutral], values.dtype), case.horizon)
        for name, values in case.covariates.items()
    }
    if case.has_holidays:
        assert model.holidays is not None
        stop = int((past["time"][-1].astype("datetime64[D]") + 1).astype(int))
        days = tuple(day for day in model.holidays.days if day < stop)
        model = replace(model, holidays=Holidays(days, model.holidays.first, model.holidays.last))
    return model.predict(past, options, ahead or None).median


def _recovered(case: Simulated, pairs: list[tuple[np.ndarray, np.ndarray]]) -> float | None:
    """Σ found · true ÷ Σ true², of the steps of all origins, less the mean of a season's step.

    What repeats with the season is no effect to a forecast.
    """
    if not pairs:
        return None
    link = np.log if case.is_log else np.asarray
    found = np.concatenate([link(one) - link(other) for one, other in pairs])
    truth = np.concatenate([case.effect[o : o + case.horizon] for o in origins(case)])
    place = np.arange(len(truth)) % case.season  # horizons are whole seasons
    count = np.bincount(place)
    found, truth = (x - (np.bincount(place, x) / count)[place] for x in (found, truth))
    return round(float(found @ truth / (truth @ truth)), 3) if truth.any() else None


def _told(model: Forecaster) -> Json:
    members = model.description["forecast_members"]
    return {"network": round(next(m["weight"] for m in members if m["name"] == "network"), 3)}


def arima(case: Simulated, *, reads: bool = True) -> Json:
    """AutoARIMA of statsforecast, fitted again at each origin; of logarithms where the truth is."""
    from statsforecast.models import AutoARIMA  # noqa: PLC0415

    x = _numbers(case) if reads else None
    levels, quantiles = [round(100 * level) for level in LEVELS], []
    link, back = (np.log, np.exp) if case.is_log else (np.asarray, np.asarray)
    for origin in origins(case):
        extra = {} if x is None else {"X": x[:origin], "X_future": x[origin:][: case.horizon]}
        model = AutoARIMA(season_length=case.season, approximation=case.season > 1)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = model.forecast(
                y=link(case.values[:origin]), h=case.horizon, level=levels, **extra
            )
        ends = [found[f"lo-{level}"] for level in reversed(levels)]
        ends += [found["mean"], *(found[f"hi-{level}"] for level in levels)]
        quantiles.append(back(np.stack(ends, axis=1)))
    return _scored(case, quantiles)


def _numbers(case: Simulated) -> np.ndarray:
    """Numbers, an indicator of each level, and how far each step is a holiday, by its effect."""
    parts = [case.effect / np.abs(case.effect).max()] if case.has_holidays else []
    for values in case.covariates.values():
        levels = sorted(set(values))[1:] if values.dtype == object else []
        parts += [(values == level).astype(float) for level in levels] or [values]
    return np.stack(parts, axis=1).astype(float)


METHODS: dict[str, Callable[[Simulated], Json]] = {
    "Credence": ours,
    "without covariates": lambda case: ours(case, reads=False),
    "network alone": lambda case: ours(case, classics=False),
    "AutoARIMA, covariates": arima,
    "AutoARIMA": lambda case: arima(case, reads=False),
}


def origins(case: Simulated) -> list[int]:
    """The first steps of the stretches that are forecast."""
    return [len(case.values) - case.horizon * k for k in range(ORIGINS, 0, -1)]


def _rows(columns: Columns, first: int, stop: int) -> Columns:
    return {name: values[first:stop] for name, values in columns.items()}


def _type(values: np.ndarray) -> str:
    return "category" if values.dtype == object else "number"


def _scored(case: Simulated, quantiles: list[Quantiles]) -> Json:
    truth = np.concatenate([case.values[o : o + case.horizon] for o in origins(case)])
    scale = naive_error(case.values[: origins(case)[0]], case.season)
    return scores(truth, np.concatenate(quantiles), scale)


def report(lines: list[Json], names: list[str]) -> str:
    """A row per series: scaled CRPS and cover of each method, means over the seeds."""
    headers = ["series", *METHODS, "effect", "of the network", "weight of the network"]
    rows, all_crps = [], dict[str, list[float]]()
    for name in names:
        row: list[str] = [name]
        for method in METHODS:
            some = [x for x in lines if (x["series"], x["method"]) == (name, method)]
            row.append(_cell(some))
            all_crps.setdefault(method, []).extend(x["scaled_crps"] for x in some)
        for method, field in (("Credence", "effect"), ("network alone", "effect")):
            row.append(_mean(lines, name, method, field))
        rows.append([*row, _mean(lines, name, "Credence", "network")])
    means = [f"{geometric_mean(found):.3f}" if found else "–" for found in all_crps.values()]
    return results.markdown(headers, [*rows, ["geometric mean", *means, "", "", ""]])


def _cell(some: list[Json]) -> str:
    if not some:
        return "–"
    crps = geometric_mean([x["scaled_crps"] for x in some])
    return f"{crps:.3f}; {np.mean([x['cover90'] for x in some]):.0%}"


def _mean(lines: list[Json], name: str, method: str, field: str) -> str:
    found = [
        x[field]
        for x in lines
        if (x["series"], x["method"]) == (name, method) and x[field] is not None
    ]
    return f"{np.mean(found):.2f}" if found else "–"


if __name__ == "__main__":
    main()
