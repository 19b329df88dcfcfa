"""Where a default training of a table spends its time.

    python -m benchmarks.training_parts [--tables FOLDER] [--only NAME …] [--rows 5000]

Tables are those of `benchmarks.cheapest`. Shares of the processor's seconds of one thread, in per
cent: the fits of the race (`shapes` of the target, `candidates`, the fit to `all rows`, where some
were left out), the `polish` of the members that are kept, the pruned `variants`; then what is
measured of the model. `scores of epochs` are part of the fits. `per step` is of the fits without
these scores, in ms.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from benchmarks import results
from benchmarks.cheapest import Table, tables
from models.config import ModelConfig
from models.features.columns import ColumnProfile
from models.tabular import measurement
from models.tabular.fold_problem import FoldProblem
from models.tabular.row_problem import RowProblem
from models.training.recipe import resolve
from models.training.stages import StageRunner
from models.training.train import train
from models.training.trainer import Trainer

STAGES = {"shape": "shapes", "candidate": "candidates", "all": "all rows", "prune": "variants"}
PARTS: dict[str, tuple[Any, str]] = {
    "scores of epochs": (Trainer, "_keep_best"),
    "calibration": (FoldProblem, "calibrated"),
    "metrics": (measurement, "score"),
    "sobol's error": (measurement, "measure_sobol_factors"),
    "choice of sampler": (measurement, "measure_samplers"),
    "importance": (RowProblem, "importance"),
}
COLUMNS = ("shapes", "candidates", "all rows", "polish", "variants", *PARTS)
Seconds = Counter[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--rows", type=int, default=5_000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])  # imports what a worker has imported
    lines = []
    for name, table in tables(arguments.tables, arguments.only, arguments.rows):
        lines.append(line(name, table))
        print(lines[-1], flush=True)
    print(results.markdown(["table", "s", "steps", "per step", *COLUMNS, "other"], lines))


def line(name: str, table: Table) -> list[Any]:
    """Seconds, steps, milliseconds per step and the shares of the parts in per cent."""
    columns, target = table
    kinds = {k: "category" if v.dtype == object else "number" for k, v in columns.items()}
    profiles = [ColumnProfile(name=key, type=kind) for key, kind in kinds.items()]
    config = ModelConfig(target=target)
    config = resolve(config, profiles, len(columns[target]), lambda ns: {n: columns[n] for n in ns})
    with measured() as spent:
        train(columns, kinds, config)
    total, steps = spent["all"], int(spent["steps"])
    fits = sum(spent[name] for name in ("polish", *STAGES.values())) - spent["scores of epochs"]
    shares = [100 * spent[part] / total for part in COLUMNS]
    other = 100 - sum(shares) + 100 * spent["scores of epochs"] / total
    figures = [results.figure(share, 2) for share in (*shares, other)]
    return [name, results.figure(total), steps, results.figure(1e3 * fits / steps), *figures]


@contextmanager
def measured() -> Iterator[Seconds]:
    """Seconds by part while the context lasts, of the processor."""
    spent: Seconds = Counter()
    started = time.process_time()
    with ExitStack() as stack:
        for part, (owner, name) in PARTS.items():
            timed = _timed(getattr(owner, name), lambda *_, part=part: part, spent)
            stack.enter_context(patch.object(owner, name, timed))
        stage = _timed(StageRunner.run, lambda _, name, run: _stage(name), spent)
        stack.enter_context(patch.object(StageRunner, "run", stage))
        step = _counted(Trainer.advance, spent)
        stack.enter_context(patch.object(Trainer, "advance", step))
        yield spent
    spent["all"] = time.process_time() - started  # type: ignore[assignment]


def _stage(name: str) -> str:
    first = name.split("-", maxsplit=1)[0]
    return STAGES.get(first, first)


def _timed(function: Callable[..., Any], part: Callable[..., str], spent: Seconds) -> Any:
    @wraps(function)
    def timed(*arguments: Any, **named: Any) -> Any:
        started = time.process_time()
        try:
            return function(*arguments, **named)
        finally:
            spent[part(*arguments)] += time.process_time() - started  # type: ignore[assignment]

    return timed


def _counted(function: Callable[..., Any], spent: Seconds) -> Any:
    @wraps(function)
    def counted(*arguments: Any) -> Any:
        spent["steps"] += 1
        return function(*arguments)

    return counted


if __name__ == "__main__":
    main()
