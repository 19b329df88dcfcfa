"""Row weights: one of 0 is as good as absent, whole ones as good as repeated rows.

Rows of weight 0 contradict the others, or are noise of a thousand times their scale: whatever reads
them shows it. Weights that are density ratios carry a calibration over to another distribution of
the inputs.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from benchmarks.verification.check import Check, Scale
from models.config import (
    BBBConfig,
    EnsembleConfig,
    MAPConfig,
    MethodConfig,
    MLPConfig,
    ModelConfig,
    TrainingConfig,
)
from models.evaluation.calibration import NumberCalibration
from models.evaluation.conformal_rank import order_statistics
from models.features.columns import ColumnProfile, Columns
from models.features.rows import Rows
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.tabular.preparation import prepare
from models.training.recipe import resolve
from models.training.train import train

ROWS = 400
FRESH = 2_000
LEVEL = 0.9
NOISE = 0.2
METHODS: Mapping[str, MethodConfig] = {
    "MAP": MAPConfig(kind="map"),
    "an ensemble": EnsembleConfig(kind="ensemble", members=3),
    "Bayes by Backprop": BBBConfig(),
}
_SHIFT = 0.5  # of the inputs' mean, in their deviations
_ROUNDING = 1e-4  # relative, of float32 sums in another order


def checks(scale: Scale) -> list[Check]:
    """The figures of row weights."""
    full = scale == "full"
    names = list(METHODS) if full else ["MAP"]
    epochs = 100 if full else 30
    found = [check for name in names for check in _absent(name, epochs)]
    found += _repeated(epochs)
    return [*found, _shifted_coverage(500 if full else 100)]


def _table(seed: int, rows: int = ROWS) -> Columns:
    random = np.random.default_rng(seed)
    x = random.uniform(-2, 2, rows)
    y = np.sin(2 * x) + NOISE * random.normal(size=rows)
    return {"x": x, "y": y, "w": np.ones(rows)}


def _joined(columns: Columns, targets: np.ndarray) -> Columns:
    """The table, and its rows again with other targets and weight 0, in turn."""
    others = columns | {"y": targets, "w": np.zeros(len(targets))}
    return {
        name: np.stack([values, others[name]], axis=1).ravel() for name, values in columns.items()
    }


def _train(columns: Columns, method: MethodConfig, epochs: int) -> TabularModel:
    model = train(columns, dict.fromkeys(columns, "number"), _config(columns, method, epochs))
    assert isinstance(model, TabularModel)
    return model


def _config(columns: Columns, method: MethodConfig, epochs: int) -> ModelConfig:
    profiles = [
        ColumnProfile(name=name, type="number", min=float(values.min()), max=float(values.max()))
        for name, values in columns.items()
    ]
    config = ModelConfig(
        target="y",
        weight="w",
        method=method,
        network=MLPConfig(hidden=(10,)),
        training=TrainingConfig(epochs=epochs, batch_size=64),
        pruning=(),
    )
    return resolve(
        config, profiles, len(columns["x"]), lambda names: {n: columns[n] for n in names}
    )


def _absent(name: str, epochs: int) -> Iterator[Check]:
    """Trainings with rows of weight 0 beside one without these rows."""
    columns, fresh = _table(0), _table(1, FRESH)
    without = _train(columns, METHODS[name], epochs)
    opposite = _train(_joined(columns, -columns["y"]), METHODS[name], epochs)
    noise = 1_000 * np.random.default_rng(2).normal(size=ROWS)
    noisy = _train(_joined(columns, noise), METHODS[name], epochs)
    errors = [model.evaluate(fresh)["rmse"] for model in (opposite, without)]
    half = f"{name}, {ROWS} rows and as many of weight 0"
    yield Check(
        f"{half} with opposite targets: RMSE on fresh rows − that without them",
        "0",
        abs(errors[0] - errors[1]),
        0,
        0,
    )
    scores = [model.variant(0.0).metrics["log_likelihood"] for model in (noisy, without)]
    yield Check(
        f"{half} with noise: reported log likelihood − that without them",
        "0",
        abs(scores[0] - scores[1]),
        0,
        0,
    )
    yield Check(
        f"{half} with noise: width of the conformal {LEVEL:.0%} interval ÷ that without them",
        "1",
        noisy.variant(0.0).metrics["conformal_width"]["0.9"]
        / without.variant(0.0).metrics["conformal_width"]["0.9"],
        1,
        1,
    )
    yield _true_score(name, noisy, fresh)


def _true_score(name: str, model: TabularModel, fresh: Columns) -> Check:
    """The reported log likelihood is that of fresh rows, within its standard error."""
    truth = fresh["y"]
    scores = model.row_scores(model.encode(fresh), truth, PredictOptions())
    by_row, rows = scores["log_likelihood"], model.variant(0.0).metrics["rows"]
    error = float(by_row.std()) / math.sqrt(rows)
    distance = (model.variant(0.0).metrics["log_likelihood"] - float(by_row.mean())) / error
    return Check(
        f"{name}, the same: reported log likelihood − that of {FRESH:,} fresh rows, in standard "
        f"errors of {rows} rows",
        "−3.5 to 3.5",
        distance,
        -3.5,
        3.5,
    )


def _repeated(epochs: int) -> list[Check]:
    """One fit, calibrated and scored on rows with whole weights, and on these rows repeated."""
    columns = _table(3)
    columns["w"] = np.random.default_rng(4).integers(1, 5, ROWS).astype(float)
    method = METHODS["an ensemble"]
    fitted = _train(columns, method, epochs)
    types = dict.fromkeys(columns, "number")
    problem = prepare(columns, types, _config(columns, method, epochs))
    assert problem.calibration is not None
    copied = replace(
        problem, calibration=_copies(problem.calibration), scores=_copies(problem.scores)
    )
    bare = replace(fitted.variants_by_prune[0.0], calibration=None, metrics={}, detector=None)
    model = problem.model.with_variants({0.0: bare})
    weighted, repeated = (one.measured(model) for one in (problem, copied))
    halves = [_half_width(one) for one in (weighted, repeated)]
    what = "rows of weights 1 to 4 ÷ the same rows repeated"
    ratios = {
        f"conformal half width at {LEVEL:.0%}": halves[0] / halves[1],
        "log likelihood": _ratio("log_likelihood", weighted, repeated),
        "RMSE": _ratio("rmse", weighted, repeated),
        "area under risk–coverage": _ratio("aurc", weighted, repeated),
        "out-of-distribution threshold": (
            weighted.detector(0.0).threshold / repeated.detector(0.0).threshold
        ),
    }
    return [
        Check(f"{what}: {name}", "1", ratio, 1 - _ROUNDING, 1 + _ROUNDING)
        for name, ratio in ratios.items()
    ]


def _copies(rows: Rows) -> Rows:
    assert rows.weights is not None
    index = torch.arange(len(rows)).repeat_interleave(rows.weights.long())
    return Rows(rows.inputs[index], rows.targets[index])


def _half_width(model: TabularModel) -> float:
    calibration = model.variant(0.0).calibration
    assert isinstance(calibration, NumberCalibration)
    return calibration.score(LEVEL)


def _ratio(score: str, one: TabularModel, other: TabularModel) -> float:
    return float(one.variant(0.0).metrics[score] / other.variant(0.0).metrics[score])


def _shifted_coverage(repeats: int) -> Check:
    """Coverage where inputs are shifted, of intervals whose calibration rows have density ratios.

    The prediction N(0, 1) ignores that the noise grows with x, so that the interval must grow with
    the shift. The ratio p(x − shift)/p(x) of unit Gaussians is exp(shift·x − shift²/2). Its square
    has the mean exp(shift²): n rows determine a quantile as n exp(−shift²) rows do. The bound is
    four standard errors, and one such row for the new row's weight, which counts as 1.
    """
    random, rows = np.random.default_rng(5), 999
    covered = [_covered(random, rows) for _ in range(repeats)]
    effective = rows * math.exp(-(_SHIFT**2))
    width = 4 * math.sqrt(LEVEL * (1 - LEVEL) / effective / repeats) + 1 / effective
    return Check(
        f"conformal {LEVEL:.0%} intervals from {rows} rows weighted by density ratios: coverage of "
        f"shifted rows, mean of {repeats}",
        f"{LEVEL:g} ± {width:.2g}",
        float(np.mean(covered)),
        LEVEL - width,
        LEVEL + width,
    )


def _covered(random: np.random.Generator, rows: int) -> float:
    x, shifted = random.normal(size=rows), random.normal(_SHIFT, 1, 4_000)
    ratios = torch.from_numpy(np.exp(_SHIFT * x - _SHIFT**2 / 2))
    kept, weights = order_statistics(_targets(x, random).abs(), ratios)
    half = NumberCalibration(1.0, kept, rows, weights).score(LEVEL)
    return float((_targets(shifted, random).abs() <= half).double().mean())


def _targets(x: np.ndarray, random: np.random.Generator) -> Tensor:
    return torch.from_numpy(np.exp(0.5 * x) * random.normal(size=len(x)))
