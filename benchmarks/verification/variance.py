"""Are both parts of a row's variance true: the noise of each row, and what more rows would remove?

Noise has a deviation of .15 e^{.8b}, b one of four features; the mean is a smooth function of the
others. Rows are compared by thirds of the true noise: a model that says the same everywhere covers
90 % on average, all of the quiet rows and few of the noisy ones.

The mean of other rows is linear in five features, with a noise of 1. The epistemic part of fresh
rows must be the squared error of their predicted means, which falls like 1 ÷ rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from benchmarks.verification.check import Check, Scale
from models.config import ModelConfig, TrainingConfig
from models.config.training import Effort
from models.features.columns import ColumnProfile
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

Points = Float[np.ndarray, "rows features"]
Values = Float[np.ndarray, "rows"]
FRESH, SAMPLES, LEVEL = 4_000, 200, 0.9
EFFORTS: tuple[Effort, ...] = ("quick", "standard")
UNEVEN_ROWS, LINEAR_ROWS = (500, 3_000), (200, 800, 3_200)
THIRDS = ("quiet", "middle", "noisy")


@dataclass(frozen=True)
class Process:
    """A feature matrix becomes the true mean and the deviation of the noise of each row."""

    features: int
    truth: Callable[[Points], tuple[Values, Values]]

    def drawn(self, rows: int, seed: int) -> tuple[dict[str, Values], Values, Values]:
        """Columns with the target `y`, and the true means and deviations."""
        random = np.random.default_rng(seed)
        x = random.normal(size=(rows, self.features))
        mean, deviation = self.truth(x)
        y = mean + deviation * random.normal(size=rows)
        return dict(zip("abcde", x.T, strict=False)) | {"y": y}, mean, deviation


def _uneven(x: Points) -> tuple[Values, Values]:
    mean = np.sin(x[:, 0]) + 0.5 * x[:, 2] + 0.3 * x[:, 2] * x[:, 3]
    return mean, 0.15 * np.exp(0.8 * x[:, 1])


def _linear(x: Points) -> tuple[Values, Values]:
    return x @ np.array([1.0, -0.5, 0.3, 0.2, 0.0]), np.ones(len(x))


UNEVEN, LINEAR = Process(4, _uneven), Process(5, _linear)


def checks(scale: Scale) -> list[Check]:
    """Both parts, by default and with a quick training; of a short run one size each."""
    torch.set_num_threads(1)
    full = scale == "full"
    found: list[Check] = []
    for effort in EFFORTS if full else EFFORTS[:1]:
        for rows in UNEVEN_ROWS if full else UNEVEN_ROWS[:1]:
            found += _noise(effort, rows, range(2 if full else 1))
        for rows in LINEAR_ROWS if full else LINEAR_ROWS[1:2]:
            found.append(_epistemic(effort, rows, range(2 if full else 1)))
    return found


def fit(process: Process, effort: Effort, rows: int, seed: int) -> TabularModel:
    """A model of rows of the process."""
    columns, _, _ = process.drawn(rows, seed)
    profiles = [ColumnProfile(name=one, type="number") for one in columns]
    training = TrainingConfig(effort=effort, background=0)
    config = ModelConfig(target="y", training=training, pruning=())
    resolved = resolve(config, profiles, rows, lambda names: {n: columns[n] for n in names})
    model = train(columns, dict.fromkeys(columns, "number"), resolved)
    assert isinstance(model, TabularModel)
    return model


@dataclass(frozen=True)
class OfThirds:
    """Of each third by true noise: predicted ÷ true deviation, and coverage by kind of interval."""

    ratio: Values
    cover: dict[str, Values]


def measure_noise(model: TabularModel, seed: int) -> OfThirds:
    """The figures of fresh rows."""
    columns, _, deviation = UNEVEN.drawn(FRESH, 1_000 + seed)
    y = columns.pop("y")
    answer = model.predict(columns, PredictOptions(samples=SAMPLES, intervals=(LEVEL,)))
    predicted = np.sqrt(answer.variance["aleatoric"])
    thirds = np.array_split(np.argsort(deviation), len(THIRDS))
    ratio = np.array([predicted[rows].mean() / deviation[rows].mean() for rows in thirds])
    cover = {}
    for one in answer.intervals:
        inside = (one.lower <= y) & (y <= one.upper)
        cover[one.kind] = np.array([inside[rows].mean() for rows in thirds])
    return OfThirds(ratio, cover)


def measure_epistemic(model: TabularModel, seed: int) -> tuple[float, float]:
    """The mean epistemic variance of fresh rows, and the squared error of their means."""
    columns, mean, _ = LINEAR.drawn(FRESH, 1_000 + seed)
    columns.pop("y")
    answer = model.predict(columns, PredictOptions(samples=SAMPLES, intervals=()))
    error = float(np.mean((answer.mean - mean) ** 2))
    return float(answer.variance["epistemic"].mean()), error


def _noise(effort: Effort, rows: int, seeds: range) -> Iterator[Check]:
    found = [measure_noise(fit(UNEVEN, effort, rows, seed), seed) for seed in seeds]
    about = f"uneven noise, {rows:,} rows, effort {effort}"
    ratio = np.mean([one.ratio for one in found], axis=0)
    for third, measured in zip(THIRDS, ratio, strict=True):
        what = f"{about}: predicted ÷ true deviation of the noise, {third} third"
        yield Check(what, "0.8 to 1.25", float(measured), 0.8, 1.25)
    for kind in found[0].cover:
        cover = np.mean([one.cover[kind] for one in found], axis=0)
        for third, measured in zip(THIRDS, cover, strict=True):
            what = f"{about}: cover of {kind} {LEVEL:.0%} intervals, {third} third"
            yield Check(what, "0.87 to 0.93", float(measured), 0.87, 0.93)


def _epistemic(effort: Effort, rows: int, seeds: range) -> Check:
    found = [measure_epistemic(fit(LINEAR, effort, rows, seed), seed) for seed in seeds]
    doubt, error = np.mean(found, axis=0)
    what = (
        f"linear mean, {rows:,} rows, effort {effort}: epistemic variance ÷ squared error of the "
        f"mean ({doubt:.4f} ÷ {error:.4f})"
    )
    return Check(what, "0.7 to 1.5", float(doubt / error), 0.7, 1.5)
