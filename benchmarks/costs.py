"""What options of a prediction cost: estimates beside measured time.

    python -m benchmarks.costs [--rounds 5]

Models of unlike sizes are warmed up as the service does, with this thread's CPU time as clock. The
estimate of an option is what `Throughput` then tells of answers that were never asked for: the time
of the default ones times their work. Beside it each option is measured between two measurements of
the default ones. Both are done in rounds, and the medians over the rounds are compared: other
processes that empty caches change neighbouring measurements alike, and single rounds do not count.
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

import torch

from app.serving.batching import speed_key
from app.serving.throughput import Throughput
from app.serving.warm_up import warm_up
from benchmarks import results
from benchmarks.interleaving import rounds as turns
from benchmarks.shapes import Shape, build
from models.model import TrainedModel
from models.prediction.options import Costs, Density, PredictOptions

MODELS = ("4-8-2", "8-50-50-2", "4-200-200-2", "4-8-5", "20-100-100-10")
ROWS, SAMPLES = 16, 1000
WITHIN, SHARE = 2.0, 0.9
ARTIFACT = "artifact"
DEFAULT = "default"
LEAST_SECONDS = 0.005  # of a measurement: shorter ones are repeated


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


def costs(model: str, rounds: int) -> list[Cost]:
    """The cost of each option of a model: medians over the rounds."""
    trained = build(Shape.parse(model))
    options, seconds = _options(trained), _measurement(trained)
    names = [name for name in options if name != DEFAULT]
    for name in options:
        seconds(options[name])  # fills caches
    estimated, measured = ({name: list[float]() for name in names} for _ in range(2))
    for name in turns(names, dict.fromkeys(names, rounds)):
        if name == names[0]:  # once a round
            for other, estimate in _estimates(trained, options).items():
                estimated[other].append(estimate)
        before, own, after = (seconds(options[each]) for each in (DEFAULT, name, DEFAULT))
        measured[name].append(2 * own / (before + after))
    median = statistics.median
    return [Cost(model, name, median(estimated[name]), median(measured[name])) for name in names]


def _measurement(model: TrainedModel) -> Callable[[PredictOptions], float]:
    """A function that measures a prediction, in seconds of this thread."""
    x = model.blank(ROWS)

    def seconds(options: PredictOptions) -> float:
        resolved, count, started = model.resolve(options), 0, time.thread_time()
        while count == 0 or time.thread_time() - started < LEAST_SECONDS:
            model.predict_rows(x, resolved)
            count += 1
        return (time.thread_time() - started) / count

    return seconds


def _estimates(model: TrainedModel, options: dict[str, PredictOptions]) -> dict[str, float]:
    """Estimates of a fresh warm-up in units of the default ones."""
    throughput = Throughput()
    warm_up(ARTIFACT, model, throughput, time.thread_time)
    found = {name: _estimate(model, throughput, one) for name, one in options.items()}
    usual = found.pop(DEFAULT)
    return {name: seconds / usual for name, seconds in found.items()}


def _options(model: TrainedModel) -> dict[str, PredictOptions]:
    classes = model.classes
    if classes is None:
        asked = NUMBERS
    else:
        costs = Costs(matrix=((1.0,) * len(classes),) * 100)
        asked = CLASSES | {"100 actions": {"costs": costs}}
    return {name: PredictOptions(samples=SAMPLES, **more) for name, more in asked.items()}


def _estimate(model: TrainedModel, throughput: Throughput, asked: PredictOptions) -> float:
    options = model.resolve(asked)
    key = speed_key(ARTIFACT, options, model.values_per_sample(options))
    return throughput.seconds(key, ROWS, SAMPLES)


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
    found = [cost for model in MODELS for cost in costs(model, rounds)]
    print(table(found))
    share = within(found)
    print(f"\n{100 * share:.0f} % of the estimates are within a factor of {WITHIN:g}")
    return 0 if share >= SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
