"""Is the stated Monte-Carlo error of every row and every output the spread over seeds?

For each network, head and number of samples: the standard deviation of every output over seeds ÷
the root mean square of the errors that the same requests state, per row. Rows are like those of
training, or their features are three times as large.

Quantiles of whole numbers jump: those of most rows never, those near the next number often. For
counts the root mean squares over all rows are compared instead, of each kind of output.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.verification.check import Check, Scale
from models.config import MLPConfig, ModelConfig, PartConfig, SWAGConfig, TrainingConfig
from models.config.methods import DropoutConfig
from models.features.columns import ColumnProfile
from models.prediction.declared_outputs import by_error_name, first_by_name
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

LEAST, MOST = 0.7, 1.4  # actual ÷ stated, of 95 % of rows and outputs
ROWS, TRAINING_ROWS, OUTSIDE = 20, 600, 3.0
SEEDS = {"short": 100, "full": 200}
SHORT = ("two hidden layers", "classes, two hidden layers", "counts")
COUNTS_LEAST, COUNTS_MOST = 0.75, 1.25
_CHANCE = 2  # standard errors of a standard deviation over seeds, which widen the bounds
_ROUNDING = 1e-6

Ratios = dict[str, np.ndarray]
"""Actual ÷ stated of every output: rows (× classes)."""


@dataclass(frozen=True)
class Case:
    """A model to train: what the configuration adds to the usual one."""

    target: str
    settings: Mapping[str, Any]
    samples: tuple[int, ...] = (100,)


CASES = {
    "one hidden layer": Case("y", {"network": MLPConfig(hidden=(40,))}, (32, 100, 300)),
    "two hidden layers": Case("y", {"network": MLPConfig(hidden=(30, 30))}, (32, 100, 300)),
    "three hidden layers": Case("y", {"network": MLPConfig(hidden=(64, 64, 64))}),
    "mixture head": Case("y", {"network": MLPConfig(hidden=(30, 30)), "likelihood": "mixture"}),
    "four members": Case("y", {"network": MLPConfig(parts=(PartConfig(members=4, hidden=(30,)),))}),
    "classes, one hidden layer": Case("label", {"network": MLPConfig(hidden=(40,))}),
    "classes, two hidden layers": Case("label", {"network": MLPConfig(hidden=(40, 40))}),
    "MC dropout": Case("y", {"method": DropoutConfig(kind="mc_dropout")}),
    "counts": Case("count", {"likelihood": "count"}, (30, 100, 300)),
    "SWAG": Case("y", {"method": SWAGConfig(kind="swag", epochs=20)}),
}


def checks(scale: Scale) -> list[Check]:
    """Percentiles of actual ÷ stated error, and the actual error where a target was requested."""
    torch.set_num_threads(1)
    names = SHORT if scale == "short" else CASES
    found: list[Check] = []
    for name in names:
        case = CASES[name]
        model = fitted(case)
        for samples in (100,) if scale == "short" else case.samples:
            of_case = of_counts if case.target == "count" else percentiles
            found += of_case(f"{name}, {samples} samples", model, samples, SEEDS[scale])
    found.append(target_met("two hidden layers", SEEDS[scale]))
    return found


def percentiles(what: str, model: TabularModel, samples: int, seeds: int) -> Iterator[Check]:
    """The ends of the range that has 95 % of rows and outputs, inside and outside the data."""
    chance = _CHANCE / math.sqrt(2 * (seeds - 1))
    least, most = LEAST * (1 - chance), MOST * (1 + chance)
    for place, factor in (("inside", 1.0), ("outside", OUTSIDE)):
        every = ratios(model, encoded(model, factor), samples, seeds)
        joined = np.concatenate([one.ravel() for one in every.values()])
        low, high = np.percentile(joined, [2.5, 97.5])
        about = f"{what}, {place} the data: actual ÷ stated error"
        yield Check(f"{about}, 2.5th percentile", f"≥ {LEAST}", float(low), least, math.inf)
        yield Check(f"{about}, 97.5th percentile", f"≤ {MOST}", float(high), 0, most)


def of_counts(what: str, model: TabularModel, samples: int, seeds: int) -> Iterator[Check]:
    """Root mean square over rows of the actual errors ÷ that of the stated ones."""
    options = PredictOptions(samples=samples, return_mc_errors=True, quantiles=(0.25, 0.75))
    x = encoded(model, 1.0)
    runs = [model.predict_rows(x, replace(options, seed=seed)) for seed in range(seeds)]
    answers = [outputs(run) for run in runs]
    squares: dict[str, list[tuple[float, float]]] = {}
    for name in runs[0].mc_errors or {}:
        actual = float(np.var([answer[name] for answer in answers], axis=0, ddof=1).mean())
        stated = float(np.square([_errors(run)[name] for run in runs]).mean())
        kind = "mean" if name == "mean" else "variances" if "variance" in name else "quantiles"
        squares.setdefault(kind, []).append((actual, stated))
    for kind, pairs in squares.items():
        actual, stated = np.sum(pairs, axis=0)
        about = f"{what}, {kind}: actual ÷ stated error"
        bounds = (COUNTS_LEAST, COUNTS_MOST)
        yield Check(about, f"{bounds[0]} to {bounds[1]}", math.sqrt(actual / stated), *bounds)


def ratios(model: TabularModel, x: Tensor, samples: int, seeds: int) -> Ratios:
    """Standard deviation over seeds ÷ root mean square of the stated errors, where it varies."""
    options = PredictOptions(samples=samples, return_mc_errors=True)
    runs = [model.predict_rows(x, replace(options, seed=seed)) for seed in range(seeds)]
    answers = [outputs(run) for run in runs]
    found = {}
    for name in runs[0].mc_errors or {}:
        stated = np.sqrt(np.mean([np.square(_errors(run)[name]) for run in runs], 0))
        values = np.stack([answer[name] for answer in answers])
        varies = values.std(0) > _ROUNDING * np.abs(values).max()
        found[name] = values.std(0, ddof=1)[varies] / stated[varies]
    return found


def target_met(name: str, seeds: int) -> Check:
    """The largest actual error of any row ÷ the `target_mc_error`, half of that of 100 samples."""
    model = fitted(CASES[name])
    x = encoded(model, 1.0)
    usual = PredictOptions(return_mc_errors=True)
    first = _in_unit(_errors(model.predict_rows(x, usual)))
    target = 0.5 * max(float(values.max()) for values in first.values())
    options = replace(usual, samples=20_000, target_mc_error=target)
    runs = [model.predict_rows(x, replace(options, seed=seed)) for seed in range(seeds // 2)]
    worst = max(
        float(np.std([outputs(run)[name] for run in runs], axis=0, ddof=1).max()) for name in first
    )
    # The largest of some hundred standard deviations is about 2½ of their errors above its mean.
    chance = 2.5 / math.sqrt(2 * (seeds // 2 - 1))
    about = f"{name}: largest actual error of any row ÷ `target_mc_error`"
    return Check(about, "≤ 1", worst / target, 0.0, 1 + chance)


def outputs(answer: RowPrediction) -> dict[str, np.ndarray]:
    """Every output by the name that its error has."""
    declared = first_by_name(answer.outputs, answer.task)
    values = {name: v for name, v in answer.values.items() if name in declared}
    return by_error_name(values, answer.outputs, answer.task, answer.coordinates)


def _errors(answer: RowPrediction) -> dict[str, np.ndarray]:
    assert answer.mc_errors is not None
    return answer.mc_errors


def _in_unit(errors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: values for name, values in errors.items() if not name.endswith("_variance")}


def generated(rows: int, seed: int) -> dict[str, np.ndarray]:
    """Rows with noise that depends on a feature, and with classes of the mean."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 4))
    mean = np.sin(2 * x[:, 0]) * x[:, 1] + np.abs(x[:, 2])
    y = mean + 0.3 * (1 + np.abs(x[:, 3])) * random.normal(size=rows)
    level = np.digitize(mean + 0.3 * random.normal(size=rows), [-0.3, 0.8, 1.5])
    features = dict(zip("abcd", x.T, strict=True))
    count = random.poisson(np.exp(0.5 + 0.4 * mean) * random.gamma(3, 1 / 3, rows))
    labels = {"label": level.astype(str).astype(object), "count": count.astype(float)}
    return features | {"y": y} | labels


def encoded(model: TabularModel, factor: float) -> Tensor:
    """Rows that were not in training, whose features are multiplied by the factor."""
    unseen = generated(ROWS, 5)
    return model.encode({name: factor * unseen[name] for name in "abcd"})


def fitted(case: Case) -> TabularModel:
    """The trained model of a case."""
    columns = generated(TRAINING_ROWS, 0)
    types = dict.fromkeys("abcd", "number")
    types[case.target] = "category" if case.target == "label" else "number"
    profiles = [ColumnProfile(name=name, type=kind) for name, kind in types.items()]
    training = TrainingConfig(epochs=80, batch_size=64, learning_rate=0.01)
    config = ModelConfig(target=case.target, training=training, **case.settings)
    given = {name: columns[name] for name in types}
    model = train(given, types, resolve(config, profiles, TRAINING_ROWS))
    assert isinstance(model, TabularModel)
    return model
