"""Forecasts: do reported scores hold for a future that nobody has seen, and are intervals true?

Series of a season, a trend and an AR(1) noise are cut where their scored end begins, and the
process goes on from there many times. Given what is before the cut, the scored end and such a
future have one distribution. So reported and fresh scores have one mean, unless something of the
scored end went into the model. The scores of the true distribution at the same steps, whose means
are equal too, are subtracted: what is left has less noise. That nothing went in is also seen
directly: another scored end must leave every forecast the same. And where the process only goes on,
no forecast is unlike those of training: the flags of steps are false alarms.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.verification.check import Check, Scale
from models.config import (
    BBBConfig,
    DropoutConfig,
    EnsembleConfig,
    ForecastConfig,
    Json,
    MethodConfig,
    MLPConfig,
    ModelConfig,
    NetworkConfig,
    RecurrentConfig,
    TrainingConfig,
)
from models.evaluation.path_calibration import PathCalibration
from models.features.columns import ColumnProfile, Columns
from models.forecasting.model import Forecaster
from models.forecasting.origins import SeriesSets
from models.forecasting.series import split_series
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

_TYPES = {"time": "number", "y": "number", "shop": "category"}
_PHI, _SEASON, _HORIZON = 0.6, 6, 6
FALSE_ALARMS = 0.04  # a share of 0.01 that is known from few held-out steps
_WITHIN_90 = 1.645  # deviations of a Gaussian
_FAMILYWISE = 2.64  # standard errors: all of six differences are within them in 95 % of cases
# P(|t| < 1.645) with 9 degrees of freedom is 0.866: of intervals whose scale is known from the
# fewest errors that calibrate. On the other side of 0.9 as much is allowed, and on both sides two
# standard errors over the series.
_SCALE_OF_NINE = 0.866, 0.934
_SAMPLES = 100  # as for the reported scores


@dataclass(frozen=True)
class _Size:
    """How much is simulated, with which network."""

    lengths: Sequence[int]
    repeats: int  # series of each length
    futures: int
    shops: int
    training: TrainingConfig
    network: NetworkConfig


_SIZES: dict[Scale, _Size] = {
    "short": _Size(
        (60, 120, 160),
        3,
        4,
        20,
        TrainingConfig(epochs=80, learning_rate=0.03),
        RecurrentConfig(kind="rnn", hidden=(4,)),
    ),
    "full": _Size((60, 120, 200, 300), 4, 6, 30, TrainingConfig(), MLPConfig()),
}
_METHODS: dict[str, MethodConfig] = {
    "bbb": BBBConfig(),
    "mc_dropout": DropoutConfig(kind="mc_dropout"),
    "ensemble": EnsembleConfig(kind="ensemble", members=3),
}


@dataclass(frozen=True)
class _Process:
    """y_t = amplitude · sin(2π t / 6) + slope · t + n_t, n_t = 0.6 n_{t−1} + a standard normal."""

    amplitude: float
    slope: float
    random: np.random.Generator

    @classmethod
    def draw(cls, seed: int) -> "_Process":
        random = np.random.default_rng(seed)
        return cls(random.uniform(0.5, 3), random.uniform(-0.05, 0.05), random)

    def noise(self, steps: int, last: float) -> np.ndarray:
        found = []
        for shock in self.random.normal(size=steps):
            last = _PHI * last + shock
            found.append(last)
        return np.array(found)

    def start(self, steps: int) -> np.ndarray:
        """Stationary noise."""
        return self.noise(steps, self.random.normal() / np.sqrt(1 - _PHI**2))

    def go_on(self, noise: np.ndarray, cut: int) -> np.ndarray:
        """The same noise up to the cut, then another future."""
        return np.concatenate([noise[:cut], self.noise(len(noise) - cut, noise[cut - 1])])

    def table(self, noise: np.ndarray, shop: str = "one") -> Columns:
        t = np.arange(float(len(noise)))
        y = self.amplitude * np.sin(2 * np.pi * t / _SEASON) + self.slope * t + noise
        return {"time": t, "y": y, "shop": np.array([shop] * len(t), object)}


def checks(scale: Scale) -> list[Check]:
    """Reported minus fresh scores and coverage of each method; coverage of conformal intervals."""
    size = _SIZES[scale]
    found: list[Check] = []
    for number, (name, method) in enumerate(_METHODS.items()):
        each = [
            _compare(length, 1_000 * length + 100 * number + repeat, size, method)
            for length in size.lengths
            for repeat in range(size.repeats)
        ]
        found += [*_checks_of(name, each), _influence(name, size, method)]
    return [*found, _conformal(size)]


@dataclass(frozen=True)
class _Compared:
    """Reported minus fresh scores of one series, the fresh coverage if it is calibrated, and the
    share of steps that are flagged."""

    log_likelihood: float
    coverage: float
    calibrated_coverage: float | None
    flagged: float


def _checks_of(name: str, each: Sequence[_Compared]) -> Iterable[Check]:
    for score in ("log_likelihood", "coverage"):
        differences = np.array([getattr(one, score) for one in each])
        error = differences.std(ddof=1) / np.sqrt(len(each))
        what = "90 % coverage" if score == "coverage" else "log likelihood"
        size = f"{differences.mean():+.3f} ± {error:.3f}"
        yield Check(
            f"{name}, {len(each)} series: reported − fresh {what} ({size}), in standard errors",
            f"0 ± {_FAMILYWISE}",
            float(differences.mean() / error),
            -_FAMILYWISE,
            _FAMILYWISE,
        )
    found = [one.calibrated_coverage for one in each if one.calibrated_coverage is not None]
    what = f"{name}, {len(found)} series: share of fresh steps in calibrated 90 % intervals"
    chance = 2 * float(np.std(found, ddof=1)) / np.sqrt(len(found))
    least, most = _SCALE_OF_NINE[0] - chance, _SCALE_OF_NINE[1] + chance
    yield Check(what, f"{least:.3f} to {most:.3f}", float(np.mean(found)), least, most)
    flagged = [one.flagged for one in each]
    most = FALSE_ALARMS + 2 * float(np.std(flagged, ddof=1)) / np.sqrt(len(flagged))
    what = f"{name}, {len(each)} series: share of the steps of forecasts that are flagged"
    yield Check(what, f"at most {FALSE_ALARMS}", float(np.mean(flagged)), 0.0, most)


def _influence(name: str, size: _Size, method: MethodConfig) -> Check:
    """The scored end is replaced: a forecast from before it must not change in any digit."""
    process, length = _Process.draw(1), size.lengths[1]
    noise = process.start(length)
    history = process.table(noise)
    end = np.arange(length) >= length - max(_HORIZON, round(0.1 * length))
    forecasts = []
    for jump in (0.0, 100.0):
        columns = {**history, "y": history["y"] + jump * end}
        answer = _fit(columns, size, method).predict(history, PredictOptions(samples=_SAMPLES))
        forecasts.append(np.stack([answer.mean, *(one.upper for one in answer.intervals)]))
    moved = float(np.abs(forecasts[0] - forecasts[1]).max())
    return Check(f"{name}: the scored end is replaced, a forecast moves by", "0", moved, 0.0, 0.0)


def _compare(length: int, seed: int, size: _Size, method: MethodConfig) -> _Compared:
    process = _Process.draw(seed)
    noise = process.start(length)
    model = _fit(process.table(noise), size, method)
    cut = _scored(model, process.table(noise))
    futures = [process.go_on(noise, cut) for _ in range(size.futures)]
    reported = _scores(model.variant(0.0).metrics)
    fresh = np.mean([_fresh(model, process.table(one)) for one in futures], 0)
    true = np.mean([_true_scores(one, cut) for one in futures], 0) - _true_scores(noise, cut)
    covered = float(fresh[1]) if model.variant(0.0).calibration else None
    log_likelihood, coverage = (reported - fresh + true).tolist()
    answers = [model.predict(process.table(one), PredictOptions()) for one in futures]
    flagged = float(np.mean([one.out_of_distribution for one in answers]))
    return _Compared(log_likelihood, coverage, covered, flagged)


def _scored(model: Forecaster, columns: Columns) -> int:
    """The first step of each series that is scored; all are of one length."""
    series = split_series(columns, model.config.target, model.forecast, model.spacing)
    return int(SeriesSets.of(series, model.config).scores[0])


def _fresh(model: Forecaster, columns: Columns) -> np.ndarray:
    return _scores(model.score_origins(model.held_out_origins(columns), 0.0, _SAMPLES))


def _scores(metrics: Json) -> np.ndarray:
    return np.array([metrics["log_likelihood"], metrics["coverage"]["0.9"]])


def _true_scores(noise: np.ndarray, cut: int) -> np.ndarray:
    """Log likelihood and 90 % coverage of the process itself, means over origins and steps."""
    steps = np.arange(1, _HORIZON + 1)
    variance = (1 - _PHI ** (2 * steps)) / (1 - _PHI**2)
    firsts = range(cut, len(noise) - _HORIZON + 1)
    after = np.array([noise[first : first + _HORIZON] for first in firsts])
    before = np.array([noise[first - 1] for first in firsts])
    z = (after - before[:, None] * _PHI**steps) / np.sqrt(variance)
    log_likelihood = -0.5 * (np.log(2 * np.pi * variance) + z**2)
    return np.array([log_likelihood.mean(), (np.abs(z) < _WITHIN_90).mean()])


def _conformal(size: _Size) -> Check:
    """Fresh coverage of conformal intervals that many series of one model calibrate together.

    Given n independent calibration errors it has a beta distribution with a mean of 0.9 and a
    variance of 0.09 ÷ (n + 2) (Vovk 2012).
    """
    length = min(size.lengths)
    processes = [_Process.draw(seed) for seed in range(size.shops)]
    noises = [process.start(length) for process in processes]
    names = [f"shop {i:03}" for i in range(size.shops)]
    each = list(zip(processes, noises, names, strict=True))
    tables = [process.table(noise, name) for process, noise, name in each]
    model = _fit(_stack(tables), size, _METHODS["mc_dropout"], key="shop")
    cut, covered = _scored(model, _stack(tables)), []
    for _ in range(max(2, size.futures // 2)):
        futures = [process.table(process.go_on(noise, cut), name) for process, noise, name in each]
        metrics = model.score_origins(model.held_out_origins(_stack(futures)), 0.0, _SAMPLES)
        covered.append(metrics["conformal_coverage"]["0.9"])
    calibration = model.variant(0.0).calibration
    assert isinstance(calibration, PathCalibration)
    bound = 3 * np.sqrt(0.09 / (calibration.independent + 2))
    return Check(
        f"{size.shops} series, {calibration.independent:.0f} independent errors: share of fresh "
        "steps in conformal 90 % intervals",
        f"0.9 ± {bound:.3f}",
        float(np.mean(covered)),
        0.9 - bound,
        0.9 + bound,
    )


def _stack(tables: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _fit(columns: Columns, size: _Size, method: MethodConfig, key: str | None = None) -> Forecaster:
    """Train by the recipe, without pruned variants, which are calibrated and scored alike."""
    profiles = [ColumnProfile(name=name, type=_TYPES[name]) for name in columns]
    forecast = ForecastConfig(
        time="time", key=key, season=_SEASON, horizon=_HORIZON, transform="none"
    )
    config = ModelConfig(
        target="y",
        task="forecasting",
        forecast=forecast,
        method=method,
        network=size.network,
        training=size.training,
        pruning=() if isinstance(method, BBBConfig) else None,
    )
    config = resolve(config, profiles, len(columns["y"]), lambda names: columns)
    model = train(columns, _TYPES, config)
    assert isinstance(model, Forecaster)
    return model
