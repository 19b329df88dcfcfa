"""What options of a prediction cost: estimates beside measured time.

    python -m benchmarks.costs [--rounds 5]

Models of unlike sizes, one of several targets, one whose rows are explained and one of several
series are warmed up as the service does, with this thread's CPU time as clock. The estimate of an
option is what `Throughput` then tells of answers that were never asked for. Beside it each option
is measured between two measurements of the default ones. Both are done in rounds, and the medians
over the rounds are compared: other processes that empty caches change neighbouring measurements
alike, and single rounds do not count.
Prints a table in Markdown: seconds of the options in units of the default ones, as estimated
and as measured, and their ratio. Ends with 1 if less than nine tenths are within a factor of two.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from app.serving.batching import speed_key
from app.serving.throughput import Throughput
from app.serving.warm_up import warm_up
from benchmarks import results
from benchmarks.interleaving import rounds as turns
from benchmarks.shapes import Shape, build
from models.config import ForecastConfig, MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile, Columns
from models.joint.fitting import train_joint
from models.model import Encoded, TrainedModel
from models.prediction.options import Costs, Density, PredictOptions, Totals
from models.training.recipe import resolve
from models.training.train import TrainingRun, train

MODELS = ("4-8-2", "8-50-50-2", "4-200-200-2", "4-8-5", "20-100-100-10")
ROWS, SAMPLES = 16, 1000
EXPLAINED_ROWS, FEW_SAMPLES = 2, 100  # for each explained row some hundred are predicted
WITHIN, SHARE = 2.0, 0.9
ARTIFACT = "artifact"
DEFAULT = "default"
LEAST_SECONDS = 0.005  # of a measurement: shorter ones are repeated
KEYS = tuple(f"shop {i}" for i in range(8))


def _levels(number: int) -> tuple[float, ...]:
    return tuple(i / (number + 1) for i in range(1, number + 1))


NUMBERS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "4 intervals": {"intervals": _levels(4)},
    "16 intervals": {"intervals": _levels(16)},
    "9 quantiles": {"quantiles": _levels(9)},
    "99 quantiles": {"quantiles": _levels(99)},
    "16 thresholds": {"exceeds": _levels(16)},
    "density, 16 points": {"density": Density(16)},
    "density, 512 points": {"density": Density(512)},
    "costs": {"costs": Costs(over=1.0, under=3.0)},
    "errors": {"return_mc_errors": True},
    "errors, 16 intervals": {"return_mc_errors": True, "intervals": _levels(16)},
    "all": {
        "intervals": _levels(16),
        "quantiles": _levels(99),
        "exceeds": _levels(16),
        "density": Density(512),
        "return_mc_errors": True,
    },
}
TARGETS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "16 intervals": {"intervals": _levels(16)},
    "9 quantiles": {"quantiles": _levels(9)},
    "errors": {"return_mc_errors": True},
}
EXPLAINED: dict[str, dict[str, Any]] = {DEFAULT: {}, "explain": {"explain": True}}
SERIES: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "sums": {"totals": Totals()},
    "sums, 16 thresholds": {"totals": Totals(exceeds=_levels(16))},
    "sums over series": {"totals": Totals(series=True)},
    "sums of 4 groups": {"totals": Totals(groups={f"g{i}": KEYS[i::4] for i in range(4)})},
    "sums, 16 intervals": {"totals": Totals(series=True), "intervals": _levels(16)},
}
CLASSES: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "a set": {"set_level": 0.9},
    "errors": {"return_mc_errors": True},
    "draws": {"return_draws": True},
}


@dataclass(frozen=True)
class Cost:
    """Times of an option in units of the default ones."""

    model: str
    option: str
    estimated: float
    measured: float

    @property
    def ratio(self) -> float:
        return self.estimated / self.measured


@dataclass(frozen=True)
class Asked:
    """A model, the input of a request, and the options that are compared."""

    model: TrainedModel
    x: Encoded
    options: dict[str, PredictOptions]

    def seconds(self, name: str) -> float:
        """The time of a prediction, in seconds of this thread."""
        resolved, count, started = self.model.resolve(self.options[name]), 0, time.thread_time()
        while count == 0 or time.thread_time() - started < LEAST_SECONDS:
            self.model.predict_rows(self.x, resolved)
            count += 1
        return (time.thread_time() - started) / count

    def estimates(self) -> dict[str, float]:
        """Estimates of a fresh warm-up in units of the default ones."""
        throughput, found = Throughput(), dict[str, float]()
        warm_up(ARTIFACT, self.model, throughput, time.thread_time)
        for name, asked in self.options.items():
            options = self.model.resolve(asked)
            key = speed_key(ARTIFACT, options, self.model.values_per_sample(options))
            found[name] = throughput.seconds(key, self.model.size(self.x), options.samples)
        usual = found.pop(DEFAULT)
        return {name: seconds / usual for name, seconds in found.items()}


def costs(model: str, rounds: int) -> list[Cost]:
    """The cost of each option of a model: medians over the rounds."""
    asked = OTHERS[model]() if model in OTHERS else _of_shape(Shape.parse(model))
    names = [name for name in asked.options if name != DEFAULT]
    for name in asked.options:
        asked.seconds(name)  # fills caches
    estimated, measured = ({name: list[float]() for name in names} for _ in range(2))
    for name in turns(names, dict.fromkeys(names, rounds)):
        if name == names[0]:  # once a round
            for other, estimate in asked.estimates().items():
                estimated[other].append(estimate)
        before, own, after = map(asked.seconds, (DEFAULT, name, DEFAULT))
        measured[name].append(2 * own / (before + after))
    median = statistics.median
    return [Cost(model, name, median(estimated[name]), median(measured[name])) for name in names]


def _options(
    options: dict[str, dict[str, Any]], samples: int = SAMPLES
) -> dict[str, PredictOptions]:
    return {name: PredictOptions(samples=samples, **more) for name, more in options.items()}


def _of_shape(shape: Shape) -> Asked:
    model, classes = build(shape), shape.outputs
    of_classes = CLASSES | {"100 actions": {"costs": Costs(matrix=((1.0,) * classes,) * 100)}}
    options = NUMBERS if model.classes is None else of_classes
    return Asked(model, model.blank(ROWS), _options(options))


def _table(targets: int) -> Columns:
    random = np.random.default_rng(0)
    columns = {name: random.normal(size=200) for name in "abcd"}
    noise = random.normal(size=(targets, 200))
    return columns | {f"y{i}": columns["a"] + one for i, one in enumerate(noise)}


def _config(columns: Columns, **options: Any) -> ModelConfig:
    training = TrainingConfig(epochs=2, fine_tune_epochs=0)
    wanted = ModelConfig(network=MLPConfig(hidden=(50,)), training=training, pruning=(), **options)
    profiles = [ColumnProfile(name=name, type=_type(name)) for name in columns]
    rows = len(next(iter(columns.values())))
    return resolve(wanted, profiles, rows, lambda names: {name: columns[name] for name in names})


def _type(name: str) -> Any:
    return "category" if name == "shop" else "number"


def _several_targets() -> Asked:
    columns = _table(3)
    configs = [
        _config({name: columns[name] for name in ("a", "b", "c", "d", target)}, target=target)
        for target in ("y0", "y1", "y2")
    ]
    types = {name: _type(name) for name in columns}
    model = train_joint(columns, types, configs, TrainingRun())
    return Asked(model, model.blank(ROWS), _options(TARGETS))


def _explained() -> Asked:
    columns = _table(1)
    types = {name: _type(name) for name in columns}
    model = train(columns, types, _config(columns, target="y0"))
    return Asked(model, model.blank(EXPLAINED_ROWS), _options(EXPLAINED, FEW_SAMPLES))


def _several_series() -> Asked:
    random, steps = np.random.default_rng(0), 60
    columns = {
        "time": np.tile(np.arange(float(steps)), len(KEYS)),
        "shop": np.repeat(np.array(KEYS, object), steps),
        "y": random.normal(size=(len(KEYS), steps)).cumsum(1).ravel(),
    }
    forecast = ForecastConfig(time="time", key="shop", horizon=12)
    config = _config(columns, target="y", task="forecasting", forecast=forecast)
    model = train(columns, {name: _type(name) for name in columns}, config)
    options = _options(SERIES, FEW_SAMPLES)
    return Asked(model, model.read(columns, None, model.resolve(options[DEFAULT])), options)


OTHERS: dict[str, Callable[[], Asked]] = {
    "3 targets": _several_targets,
    "explained rows": _explained,
    "8 series": _several_series,
}


def within(found: Sequence[Cost], factor: float = WITHIN) -> float:
    """The share of the estimates that are within a factor of the measured times."""
    return sum(1 / factor <= cost.ratio <= factor for cost in found) / len(found)


def table(found: Sequence[Cost]) -> str:
    """The table of docs/benchmarks.md."""
    rows = [
        (c.model, c.option, f"{c.estimated:.1f}", f"{c.measured:.1f}", f"{c.ratio:.2f}")
        for c in found
    ]
    return results.markdown(("model", "option", "estimated", "measured", "ratio"), rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    found = [cost for model in (*MODELS, *OTHERS) for cost in costs(model, rounds)]
    print(table(found))
    share = within(found)
    print(f"\n{100 * share:.0f} % of the estimates are within a factor of {WITHIN:g}")
    return 0 if share >= SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
