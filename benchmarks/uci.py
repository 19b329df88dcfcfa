"""The standard regression tables: log likelihood and interval coverage over all splits.

    python -m benchmarks.uci --data FOLDER [yacht energy …] [--networks published recipe]
                             [--splits 20] [--set JSON] [--table] [--picture FILE]

Reads every `uci/<name>.csv[.gz]` with a `uci/<name>.splits.json` in a folder as
`benchmarks/data.py` describes. Trains a model per split with the recommended recipe: with the
network of the published results (`published`: one hidden layer of 50 units, 100 for more than
20,000 rows), with the network that the recipe chooses (`recipe`), or with both. `--set` has further
fields of the configuration. A split's test rows are used only to score the trained model; rows that
the recipe holds out come from the training rows. Results are stored after each split, and an
interrupted run resumes. `--table` only prints the stored results.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter

from benchmarks import data, results
from benchmarks.pictures import picture
from examples.demo_parts.pictures import BLUE, GREY, ORANGE
from models.config import ModelConfig
from models.features.columns import ColumnProfile, Columns
from models.training.recipe import resolve
from models.training.train import train

TARGET = "y"
NETWORKS = ("published", "recipe")
HIDDEN, HIDDEN_LARGE, LARGE = 50, 100, 20_000
SCORED = 0.01  # share of training rows to hold out; small, because there are test rows

# Mean test log likelihood, 1×50 ReLU (100 for protein): MC dropout, tuned (Gal and Ghahramani 2016,
# yaringal/DropoutUncertaintyExps); deep ensemble of five (Lakshminarayanan et al. 2017); MCVI and
# DVI (Wu et al. 2019, table 2); the best single network that we know of.
PUBLISHED = {
    "bostonHousing": (-2.40, -2.41, -2.46, -2.41, -2.35),
    "concrete": (-2.93, -3.06, -3.07, -3.06, -2.93),
    "energy": (-1.21, -1.38, -1.03, -1.01, -0.75),
    "naval-propulsion-plant": (4.45, 5.63, 5.94, 6.29, 6.33),
    "protein-tertiary-structure": (-2.87, -2.83, -2.87, -2.85, -2.63),
    "yacht": (-1.25, -1.18, -0.68, -0.47, -0.47),
}
KINDS = {"coverage": "credible", "conformal_coverage": "conformal"}
METHODS = ("MC dropout", "ensemble of 5", "MCVI", "DVI", "best single")
SHADES = dict(zip(METHODS, ("#c2a21b", "#8e5bb0", "#8a8a8a", "#4d4d4d", "#3a8f5c"), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="see benchmarks/data.py")
    parser.add_argument("sets", nargs="*", help="default: all in the folder")
    parser.add_argument("--splits", type=int, default=20, help="at most this many of each set")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=["published"])
    parser.add_argument("--set", type=json.loads, default={}, help="of the configuration, as JSON")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", action="store_true", help="print stored results, run nothing")
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # more threads do not speed up networks this small
    names = arguments.sets or data.uci_names(arguments.data)
    recipes = [Recipe(kind, arguments.seed, arguments.set) for kind in arguments.networks]
    if not arguments.table:
        for name, recipe in product(names, recipes):
            run(arguments.data, name, arguments.splits, recipe)
    measured = {recipe: {name: load(name, recipe) for name in names} for recipe in recipes}
    print(table(measured))
    if arguments.picture:
        drawn = measured[recipes[0]]
        draw({name: splits for name, splits in drawn.items() if splits}, arguments.picture)


@dataclass(frozen=True, eq=False)
class Recipe:
    """The settings of a run.

    Args:
        network: one of `NETWORKS`.
        settings: further fields of the configuration.
    """

    network: str
    seed: int
    settings: dict[str, Any]

    def file(self, name: str) -> str:
        """The name of the results of a data set."""
        own = [] if self.network == "published" else [self.network]
        if self.settings:
            text = json.dumps(self.settings, sort_keys=True)
            own.append(hashlib.sha256(text.encode()).hexdigest()[:8])
        return "-".join(["uci", name, str(self.seed), *own])

    def configure(self, training: Columns) -> ModelConfig:
        """The recipe's configuration, without pruned variants."""
        profiles = [
            ColumnProfile(name=name, type="number", min=float(v.min()), max=float(v.max()))
            for name, v in training.items()
        ]
        rows = len(training[TARGET])
        wanted: dict[str, Any] = {"target": TARGET, "pruning": []} | self.settings
        fixed = {"seed": self.seed, "validation_fraction": SCORED}
        wanted["training"] = fixed | wanted.get("training", {})
        if self.network == "published":
            hidden = HIDDEN_LARGE if rows > LARGE else HIDDEN
            wanted["network"] = {"kind": "mlp", "hidden": [hidden]}
        return resolve(TypeAdapter(ModelConfig).validate_python(wanted), profiles, rows)


def run(root: Path, name: str, num_splits: int, recipe: Recipe) -> None:
    """Measure the missing splits of a set."""
    settings = {"name": name, **asdict(recipe)}
    kept = results.resumable(recipe.file(name), settings)
    done: list[dict[str, Any]] = kept.get("splits", [])
    columns, splits = data.uci(root, name)
    for number, test in enumerate(splits[:num_splits]):
        if number < len(done):
            continue
        done.append(measure(columns, np.array(test), recipe))
        state = {"settings": settings, "machine": results.machine(), "splits": done}
        results.save(recipe.file(name), state)
        print(f"{name} {recipe.network} {number}: {json.dumps(done[-1])}", flush=True)


def measure(columns: Columns, test: np.ndarray, recipe: Recipe) -> dict[str, Any]:
    """Train on a split's training rows, and score its test rows."""
    held_back = np.zeros(len(columns[TARGET]), dtype=bool)
    held_back[test] = True
    training, testing = (
        {k: v[side] for k, v in columns.items()} for side in (~held_back, held_back)
    )
    started = time.perf_counter()
    model = train(training, dict.fromkeys(training, "number"), recipe.configure(training))
    seconds = time.perf_counter() - started
    scores = model.evaluate(testing, samples=200)
    return {**scores, "seconds": seconds}


def load(name: str, recipe: Recipe) -> list[dict[str, Any]]:
    """The stored measurements."""
    return list(results.load(recipe.file(name)).get("splits", []))


def table(measured: Mapping[Recipe, Mapping[str, list[dict[str, Any]]]]) -> str:
    """A line per data set and network: means ± standard errors over splits, published values."""
    headers = (
        "data",
        "network",
        "splits",
        "log likelihood",
        *METHODS,
        "RMSE",
        "CRPS",
        "90 % credible covers",
        "90 % conformal covers",
        "seconds each",
    )
    names = dict.fromkeys(name for by_name in measured.values() for name in by_name)
    lines = [
        _line(name, recipe.network, by_name[name])
        for name in names
        for recipe, by_name in measured.items()
        if by_name[name]
    ]
    return results.markdown(headers, lines)


def _line(name: str, network: str, splits: list[dict[str, Any]]) -> list[str]:
    likelihoods = [split["log_likelihood"] for split in splits]
    error = np.std(likelihoods, ddof=1) / len(splits) ** 0.5 if len(splits) > 1 else float("nan")
    published = PUBLISHED.get(name, (None,) * len(METHODS))
    return [
        name,
        network,
        str(len(splits)),
        f"**{np.mean(likelihoods):.3f}** ± {error:.3f}",
        *("–" if value is None else f"{value:.2f}" for value in published),
        results.figure(_mean(splits, "rmse")),
        results.figure(_mean(splits, "crps")),
        *(f"{100 * _covered(splits, kind):.1f} %" for kind in ("coverage", "conformal_coverage")),
        f"{_mean(splits, 'seconds'):.0f}",
    ]


def draw(measured: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Draw log likelihoods relative to DVI, and the coverage of the intervals by level."""
    with picture(path, 1, 2, (9.5, 3.4)) as ((left, right),):
        names = [name for name in measured if name in PUBLISHED]
        for i, name in enumerate(names):
            own = np.array([split["log_likelihood"] for split in measured[name]])
            zero = PUBLISHED[name][METHODS.index("DVI")]
            error = own.std(ddof=1) / len(own) ** 0.5 if len(own) > 1 else 0.0
            left.errorbar(own.mean() - zero, i, xerr=error, color=BLUE, marker="o", capsize=3)
            for method, value in zip(METHODS, PUBLISHED[name], strict=True):
                style = {"marker": "|", "markersize": 12, "markeredgewidth": 2, "linestyle": ""}
                left.plot(value - zero, i, color=SHADES[method], **style)
        left.axvline(0, color=GREY, linewidth=0.7)
        left.set_yticks(range(len(names)), names)
        left.set(title="test log likelihood, above DVI's, nats", xlim=(-1.0, 1.0))
        left.plot([], [], color=BLUE, marker="o", label="this service")
        for method in METHODS:
            left.plot([], [], color=SHADES[method], marker="|", linestyle="", label=method)
        left.legend(loc="lower left", fontsize=7)
        levels = sorted(next(iter(measured.values()))[0]["coverage"], key=float)
        for kind, colour in (("coverage", BLUE), ("conformal_coverage", ORANGE)):
            for splits in measured.values():
                covered = [np.mean([split[kind][level] for split in splits]) for level in levels]
                right.plot(
                    [float(level) for level in levels], covered, ".-", color=colour, alpha=0.6
                )
            right.plot([], [], ".-", color=colour, label=KINDS[kind])
        right.plot([0.45, 1], [0.45, 1], color=GREY, linewidth=0.7)
        right.set(title="share of test rows inside", xlabel="level of the interval")
        right.legend(loc="upper left")


def _mean(splits: list[dict[str, Any]], key: str) -> float:
    return float(np.mean([split[key] for split in splits]))


def _covered(splits: list[dict[str, Any]], kind: str) -> float:
    """The mean 90 % coverage over the splits, which have equally many rows."""
    return float(np.mean([split[kind]["0.9"] for split in splits]))


if __name__ == "__main__":
    main()
