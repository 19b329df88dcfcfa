"""Real series beside what people use for them: four origins each, without any tuning.

    python -m benchmarks.series FOLDER [--only NAME …] [--set JSON] [--peers FILE] [--file FILE]
                                       [--summary]

FOLDER has `series.json` (name → `season`, `horizon`, `origins`) and NAME.csv (`time`, `y`). The
last stretches of `horizon` steps are forecast, each from all before it. Ours is trained once in
this process, with the recommended recipe, on what lies before the first origin. The peers
(statsforecast) are fitted again at each origin; FILE, by default FOLDER/peers.jsonl, has those
that were measured before. `--set` has further settings of a model, such as
'{"method": {"kind": "ensemble"}}'. Each result is a line of the file of results; an interrupted
run resumes after its last one, and series that failed are tried again. `--summary` only prints
what is there.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import TypeAdapter

from benchmarks import results
from benchmarks.series_scores import (
    PEERS,
    Json,
    answer_quantiles,
    geometric_mean,
    naive_error,
    peer_quantiles,
    scores,
)
from benchmarks.table_scores import LEVELS
from benchmarks.tables import digest, read_lines
from core.calendars import holidays_of
from core.datasets.columns.conversion import to_numpy
from core.datasets.profiles import profile
from models.config import ModelConfig
from models.features.columns import ColumnProfile, Columns
from models.forecasting.model import Forecaster
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

OURS = "Credence"
SAMPLES = 200


@dataclass(frozen=True)
class Case:
    """A series of a folder and the rows at which forecasts begin."""

    name: str
    season: int
    horizon: int
    frame: pd.DataFrame
    origins: tuple[int, ...]

    @property
    def values(self) -> np.ndarray:
        return self.frame["y"].to_numpy(float)

    @property
    def scale(self) -> float:
        return naive_error(self.values[: self.origins[0]], self.season)

    def truth(self) -> np.ndarray:
        """The values of all forecast steps, origin by origin."""
        return np.concatenate([self.values[o : o + self.horizon] for o in self.origins])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", help="names of series; default: all of the folder")
    parser.add_argument("--set", type=json.loads, default={}, help="settings of a model, as JSON")
    parser.add_argument("--peers", type=Path, help="results of peers; default: peers.jsonl")
    parser.add_argument("--file", type=Path, help="of the results; default: in benchmarks/results")
    parser.add_argument("--summary", action="store_true", help="print stored results, run nothing")
    arguments = parser.parse_args()
    chosen = list(cases(arguments.folder, arguments.only))
    file = arguments.file or results.RESULTS / f"series-{digest(arguments.set)}.jsonl"
    known = read_lines(arguments.peers or arguments.folder / "peers.jsonl")
    if not arguments.summary:
        run(chosen, arguments.set, file, known)
    print(report([one.name for one in chosen], [*known, *read_lines(file)]))


def cases(folder: Path, only: Iterable[str] | None = None) -> Iterator[Case]:
    """The series of a folder in the order of its `series.json`.

    Raises:
        ValueError: a name in `only` is not there.
    """
    told = json.loads((folder / "series.json").read_text())
    if unknown := set(only or ()) - set(told):
        raise ValueError(f"{folder} has no series {sorted(unknown)}; it has {', '.join(told)}")
    for name, about in told.items():
        if only is None or name in set(only):
            frame = pd.read_csv(folder / f"{name}.csv")
            steps = about["horizon"]
            origins = (len(frame) - steps * k for k in range(about["origins"], 0, -1))
            yield Case(name, about["season"], steps, frame, tuple(origins))


def run(chosen: Iterable[Case], settings: Json, file: Path, known: Iterable[Json]) -> None:
    """Measure what neither the file nor `known` has, and add it to the file.

    Raises:
        ValueError: the file has results of other settings.
    """
    stored = read_lines(file)
    if any(line["settings"] != settings for line in stored if line["method"] == OURS):
        raise ValueError(f"{file} has results of other settings: give another --file")
    done = {(x["series"], x["method"]) for x in (*known, *stored) if "error" not in x}
    file.parent.mkdir(parents=True, exist_ok=True)
    for case in chosen:
        for method, forecast in methods(case, settings).items():
            if (case.name, method) in done:
                continue
            line = {"series": case.name, "method": method, **_measured(case, forecast)}
            line |= {"settings": settings} if method == OURS else {}
            line |= {"commit": results.machine()["commit"]}
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


def methods(case: Case, settings: Json) -> dict[str, Callable[[], Json]]:
    """What each method reaches on a series, as a function."""

    def peer(label: str) -> Callable[[], Json]:
        return lambda: peer_scores(case, label)

    return {OURS: lambda: our_scores(case, settings), **{label: peer(label) for label in PEERS}}


def _measured(case: Case, scored: Callable[[], Json]) -> Json:
    """The scores and the seconds, or the error: a failure does not hide the other series."""
    started = time.perf_counter()
    try:
        found = scored()
        return found | {"seconds": round(time.perf_counter() - started, 1)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:500]}


def peer_scores(case: Case, label: str) -> Json:
    """Of a class of statsforecast."""
    pasts = [case.values[:origin] for origin in case.origins]
    quantiles = [peer_quantiles(label, past, case.season, case.horizon) for past in pasts]
    return scores(case.truth(), np.concatenate(quantiles), case.scale)


def our_scores(case: Case, settings: Json) -> Json:
    """Of one training; also how many sums over the horizon lie inside their 90 % interval."""
    model, types = fit(case.frame[: case.origins[0]], case, settings)
    options = PredictOptions(
        samples=SAMPLES, horizon=case.horizon, intervals=LEVELS, return_draws=True
    )
    answers = [model.predict(_read(case.frame[:o], types), options) for o in case.origins]
    quantiles = np.concatenate([answer_quantiles(answer) for answer in answers])
    sums = case.truth().reshape(len(case.origins), -1).sum(1)
    ends = [np.quantile(answer.draws.sum(1), (0.05, 0.95)) for answer in answers]
    inside = [low <= total <= high for total, (low, high) in zip(sums, ends, strict=True)]
    found = scores(case.truth(), quantiles, case.scale)
    return found | {"sum_cover90": round(float(np.mean(inside)), 4)}


def fit(frame: pd.DataFrame, case: Case, settings: Json) -> tuple[Forecaster, dict[str, str]]:
    """The model of a series, and the types of its columns."""
    season = {"season": case.season} if case.season > 1 else {}
    forecast = {"time": "time", "horizon": case.horizon, **season}
    table = _table(frame)
    types: dict[str, str] = {n: profile(n, table.column(n)).type for n in table.column_names}
    return fit_recipe(_read(frame, types), types, {"forecast": forecast} | settings), types


def fit_recipe(columns: Columns, types: Mapping[str, str], settings: Json) -> Forecaster:
    """A forecaster of the column `y` by the recommended recipe, as `POST /train` makes it."""
    wanted = TypeAdapter(ModelConfig).validate_python(
        {"target": "y", "task": "forecasting"} | settings
    )
    rows = len(columns["y"])
    profiles = [ColumnProfile(name=name, type=kind) for name, kind in types.items()]
    config = resolve(wanted, profiles, rows, lambda names: {n: columns[n] for n in names})
    model = train(columns, types, config, holidays=holidays_of(config, columns))
    assert isinstance(model, Forecaster)
    return model


def _table(frame: pd.DataFrame) -> pa.Table:
    if not pd.api.types.is_numeric_dtype(frame["time"]):
        times = np.array(frame["time"].to_list(), "datetime64[us]")
        return pa.table({"time": times, "y": frame["y"].to_numpy(float)})
    return pa.table({"time": frame["time"].to_numpy(float), "y": frame["y"].to_numpy(float)})


def _read(frame: pd.DataFrame, types: dict[str, str]) -> Columns:
    table = _table(frame)
    return {name: np.array(to_numpy(table.column(name), type_)) for name, type_ in types.items()}


def report(names: Iterable[str], lines: Iterable[Json]) -> str:
    """A row per series, geometric means, and how ours compares with the best peer."""
    found = {(x["series"], x["method"]): x for x in lines if "error" not in x}
    failed = [x for x in lines if "error" in x and (x["series"], x["method"]) not in found]
    order = [OURS, *PEERS]
    rows = [
        [name, *(_cell(found.get((name, method))) for method in order), _ratio(found, name)]
        for name in names
    ]
    means = [_means([found[n, m] for n in names if (n, m) in found]) for m in order]
    rows.append(["geometric mean; mean cover", *means, ""])
    headers = ["scaled CRPS (90 % covers)", *order, "ours ÷ best peer"]
    sums = [x["sum_cover90"] for n in names if (x := found.get((n, OURS))) and "sum_cover90" in x]
    told = [f"90 % intervals of sums over the horizon cover {np.mean(sums):.1%}"] if sums else []
    told += [f"{x['series']}, {x['method']} failed: {x['error']}" for x in failed]
    return "\n".join([results.markdown(headers, rows), "", *told])


def _cell(line: Json | None) -> str:
    return "–" if line is None else f"{line['scaled_crps']:.3f} ({line['cover90']:.0%})"


def _ratio(found: dict[tuple[str, str], Json], name: str) -> str:
    peers = [found[name, m]["scaled_crps"] for m in PEERS if (name, m) in found]
    own = found.get((name, OURS))
    return f"{own['scaled_crps'] / min(peers):.3f}" if own and peers else "–"


def _means(lines: list[Json]) -> str:
    if not lines:
        return "–"
    crps = geometric_mean([one["scaled_crps"] for one in lines])
    return f"{crps:.3f} ({np.mean([one['cover90'] for one in lines]):.1%})"


if __name__ == "__main__":
    main()
