"""Are forecasts as wide as the process that made the series?

y_t = 3 sin(2π t ÷ 12), or nothing, + n_t with n_t = φ n_{t−1} + a standard normal. After h steps n
has the variance Σ_{j<h} φ^{2j}, and its sum over them Σ_{j<h} (1 + φ + … + φ^j)². The 90 %
intervals of a default forecast are compared with those of the truth. A forecast from so few steps
does not know the parameters, so a little more than 1 is right. The series are too short to
calibrate: classical members forecast alone, whatever the network.
"""

from collections.abc import Iterator

import numpy as np

from benchmarks.verification.check import Check, Scale
from models.config import ForecastConfig, MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile, Columns
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

HORIZON, SEASON, STEPS = 12, 12, 200
PROCESSES = {  # φ, and whether there is a season
    "noise": (0.0, False),
    "AR(1), φ = 0.7": (0.7, False),
    "AR(1), φ = 0.9": (0.9, False),
    "random walk": (1.0, False),
    "season, AR(1), φ = 0.6": (0.6, True),
}
SERIES = {"short": 2, "full": 10}
LEAST, MOST = 0.9, 1.15
_WIDTH = 2 * 1.645  # of a 90 % interval, in deviations


def checks(scale: Scale) -> list[Check]:
    """Mean widths over several series of each process."""
    return [check for name in PROCESSES for check in _of_process(name, scale)]


def _of_process(name: str, scale: Scale) -> Iterator[Check]:
    found = np.array([widths(*PROCESSES[name], seed) for seed in range(SERIES[scale])])
    means, errors = found.mean(0), found.std(0, ddof=1) / np.sqrt(len(found))
    for place, mean, error in zip(("first step", "last step", "sum"), means, errors, strict=True):
        what = f"{name}, {len(found)} series: width ÷ that of the truth, {place} (± {error:.2f})"
        yield Check(what, f"{LEAST:g} to {MOST:g}", float(mean), LEAST, MOST)


def widths(phi: float, has_season: bool, seed: int) -> tuple[float, float, float]:
    """Of the first and the last step and of the sum of all, ÷ those of the truth."""
    draws = _drawn(_series(phi, has_season, seed), SEASON if has_season else None)
    weights = phi ** np.arange(HORIZON)  # of a shock in the steps from its own on
    truth = np.sqrt([1.0, np.square(weights).sum(), np.square(weights.cumsum()).sum()])
    each = draws[:, 0], draws[:, -1], draws.sum(1)
    low, high = np.quantile(np.stack(each), (0.05, 0.95), axis=1)
    first, last, total = ((high - low) / (_WIDTH * truth)).tolist()
    return first, last, total


def _series(phi: float, has_season: bool, seed: int) -> Columns:
    random, t = np.random.default_rng(seed), np.arange(float(STEPS))
    n = [0.0 if phi == 1 else float(random.normal() / np.sqrt(1 - phi**2))]
    for shock in random.normal(size=STEPS - 1):
        n.append(phi * n[-1] + shock)
    return {"time": t, "y": 3 * np.sin(2 * np.pi * t / SEASON) * has_season + np.array(n)}


def _drawn(columns: Columns, season: int | None) -> np.ndarray:
    """Paths of a forecast from the end of the series."""
    config = ModelConfig(
        target="y",
        forecast=ForecastConfig(time="time", horizon=HORIZON, season=season),
        network=MLPConfig(hidden=(8,)),
        training=TrainingConfig(epochs=20),
        pruning=(),
    )
    types = dict.fromkeys(columns, "number")
    profiles = [ColumnProfile(name=name, type="number") for name in columns]
    model = train(columns, types, resolve(config, profiles, STEPS, lambda _: columns))
    return np.asarray(model.predict(columns, PredictOptions(samples=200, return_draws=True)).draws)
