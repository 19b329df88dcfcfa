"""Whether a model knows what it does not know: in holes between its rows, and outside of them.

Functions are known, so that each row's epistemic interval can be compared with the truth. Rows have
values from −3 to 3. A hole is a stretch of the first feature without rows, or a disc in the middle
whose features by themselves have no gap.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from benchmarks.verification.check import Check, Scale
from models.config import ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile, Columns
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

Points = Float[np.ndarray, "rows features"]
Values = Float[np.ndarray, "rows"]
Truth = Callable[[Points, np.random.Generator], Values]
"""Draws a function; its values at these points."""

EDGE, MIDDLE, WIDE = 3.0, 0.9, 1.2  # of the rows, of a stretch without rows, of such a disc
INSIDE, BESIDE = 0.65, 1.1  # of the hole's size: where truths are in the hole, and in the rows
PLACES = ("in the rows", "in the hole", "outside")
LEVEL, DEVIATIONS = 0.9, 1.645
FRESH = 200  # truths of each place


def gaussian_process(x: Points, random: np.random.Generator) -> Values:
    """Of unit variance; longer lengths in several features, so that there is something to learn."""
    scaled = x / _lengths(x, random)
    squares = (scaled**2).sum(1)
    distance = squares[:, None] + squares - 2 * scaled @ scaled.T
    covariance = np.exp(-0.5 * distance.clip(0)) + 1e-6 * np.eye(len(x))
    return np.asarray(np.linalg.cholesky(covariance) @ random.normal(size=len(x)))


def _lengths(x: Points, random: np.random.Generator) -> Float[np.ndarray, "features"]:
    features = x.shape[1]
    return random.uniform(0.5, 1.2, features) * (1 if features == 1 else 1.6)


def x_sine(x: Points, random: np.random.Generator) -> Values:
    slope, phase = random.uniform(1, 2), random.uniform(0, np.pi)
    return np.asarray(0.6 * x[:, 0] * np.sin(slope * x[:, 0] + phase))


def line(x: Points, random: np.random.Generator) -> Values:
    return np.asarray(x @ random.normal(size=x.shape[1]) / np.sqrt(3 * x.shape[1]))


def tree(x: Points, random: np.random.Generator) -> Values:
    """Eight leaves: three cuts, of a feature each."""
    features = random.integers(0, x.shape[1], 3)
    leaf = (x[:, features] > random.uniform(-2, 2, 3)) @ np.array([1, 2, 4])
    return np.asarray(random.normal(size=8)[leaf])


@dataclass(frozen=True)
class Case:
    """A kind of function and of rows.

    Args:
        disc: whether the hole is one of the first two features together.
        uneven: whether the noise grows with the last feature.
    """

    name: str
    truth: Truth
    features: int
    rows: int = 300
    disc: bool = False
    uneven: bool = False

    @property
    def about(self) -> str:
        plural = "s" if self.features > 1 else ""
        return f"{self.name}, {self.features} feature{plural}, {self.rows:,} rows"


CASES = (
    Case("Gaussian process", gaussian_process, 1),
    Case("Gaussian process", gaussian_process, 3),
    Case("Gaussian process", gaussian_process, 8, rows=1_000),
    Case("Gaussian process, few rows", gaussian_process, 1, rows=40),
    Case("Gaussian process, uneven noise", gaussian_process, 1, uneven=True),
    Case("Gaussian process, hole in two features together", gaussian_process, 2, disc=True),
    Case("x · sin x", x_sine, 1),
    Case("line", line, 3),
    Case("tree", tree, 3),
)


def checks(scale: Scale) -> list[Check]:
    """Cover of the true function for each kind of function, and how doubt shrinks with rows."""
    cases, seeds = (CASES, range(2)) if scale == "full" else (CASES[:2], range(1))
    found = [check for case in cases for check in _covers(case, seeds, scale)]
    return [*found, _shrinks(scale)]


@dataclass(frozen=True)
class Drawn:
    """Rows to learn from, and points of each of the `PLACES` with the true function there."""

    columns: Columns
    points: tuple[Points, ...]
    truths: tuple[Values, ...]
    noise: Values  # deviation of the rows in the first place


def draw(case: Case, seed: int) -> Drawn:
    """A function, its noise, and rows of it."""
    random = np.random.default_rng(seed)
    deviation = random.uniform(0.1, 0.4)
    size = (40 * (case.rows + FRESH), case.features)
    x, fresh = (random.uniform(-EDGE, EDGE, size) for _ in range(2))
    radius, hole = _radius(x, case), WIDE if case.disc else MIDDLE
    learned = x[radius > hole][: case.rows]
    beside = fresh[_radius(fresh, case) > BESIDE * hole][:FRESH]
    inside = fresh[_radius(fresh, case) < INSIDE * hole][:FRESH]
    outside = random.uniform(-EDGE, EDGE, (FRESH, case.features))
    outside[:, 0] = random.choice([-1, 1], FRESH) * random.uniform(3.5, 5, FRESH)
    parts = [learned, beside, inside, outside]
    every = np.concatenate(parts)
    ends = np.cumsum([len(part) for part in parts])[:-1]
    values, *truths = np.split(case.truth(every, random), ends)
    growth = [np.exp(part[:, -1] / 3) if case.uneven else np.ones(len(part)) for part in parts]
    y = values + deviation * growth[0] * random.normal(size=len(values))
    points = beside, inside, outside
    return Drawn(_columns(learned) | {"y": y}, points, tuple(truths), deviation * growth[1])


def _radius(x: Points, case: Case) -> Values:
    """The distance from the middle of the hole."""
    return np.asarray(np.linalg.norm(x[:, : 2 if case.disc else 1], axis=1))


def _columns(x: Points) -> Columns:
    return {f"x{i}": column for i, column in enumerate(x.T)}


def fit(columns: Columns, scale: Scale) -> TabularModel:
    """A model of `y`, trained by default; a short simulation tries less."""
    profiles = [_profile(name, values) for name, values in columns.items()]
    training = TrainingConfig(effort="standard" if scale == "full" else "quick", background=0)
    config = ModelConfig(target="y", training=training, pruning=())
    read = lambda names: {name: columns[name] for name in names}  # noqa: E731
    resolved = resolve(config, profiles, len(columns["y"]), read)
    model = train(columns, {profile.name: profile.type for profile in profiles}, resolved)
    assert isinstance(model, TabularModel)
    return model


def _profile(name: str, values: np.ndarray) -> ColumnProfile:
    if values.dtype == object:
        return ColumnProfile(name=name, type="category", levels=tuple(sorted(set(values.tolist()))))
    low, high = float(values.min()), float(values.max())
    return ColumnProfile(name=name, type="number", min=low, max=high)


@dataclass(frozen=True)
class Measured:
    """Figures of one place: cover of the true function, epistemic deviation, error."""

    cover: float
    epistemic: float
    error: float


def measure(model: TabularModel, drawn: Drawn) -> tuple[list[Measured], float]:
    """The figures of each place, and the log likelihood of fresh values in the rows."""
    options, found = PredictOptions(samples=200), []
    for x, truth in zip(drawn.points, drawn.truths, strict=True):
        answer = model.predict(_columns(x), options)
        doubt = np.sqrt(answer.variance["epistemic"])
        wrong = np.abs(answer.mean - truth)
        cover = float(np.mean(wrong <= DEVIATIONS * doubt))
        found.append(Measured(cover, float(doubt.mean()), float(np.sqrt(np.mean(wrong**2)))))
    fresh = drawn.truths[0] + drawn.noise * np.random.default_rng(0).normal(size=FRESH)
    scores = model.row_scores(model.encode(_columns(drawn.points[0])), fresh, options)
    return found, float(scores["log_likelihood"].mean())


def _covers(case: Case, seeds: range, scale: Scale) -> Iterator[Check]:
    """The means over functions; eight features tell little of a function, so less is asked."""
    measured = []
    for seed in seeds:
        drawn = draw(case, seed)
        measured.append(measure(fit(drawn.columns, scale), drawn))
    score = np.mean([score for _, score in measured])
    least = (0.8, 0.8, 0.7) if case.features < 8 else (0.7, 0.7, 0.6)
    for i, (place, lowest) in enumerate(zip(PLACES, least, strict=True)):
        one = [places[i] for places, _ in measured]
        doubt, error = np.mean([m.epistemic for m in one]), np.mean([m.error for m in one])
        also = f"; log likelihood {score:.3f}" if i == 0 else ""
        yield Check(
            f"{case.about}: truth {place} within {LEVEL:.0%} epistemic intervals "
            f"(deviation {doubt:.2f}, error {error:.2f}{also})",
            f"at least {lowest:g}",
            float(np.mean([m.cover for m in one])),
            lowest,
            1,
        )


def _shrinks(scale: Scale) -> Check:
    """The epistemic variance among the rows is that of a fit with so many parameters ÷ rows."""
    few, many = (200, 2_000) if scale == "full" else (100, 500)
    case, variances = CASES[0], []
    for rows in (few, many):
        drawn = draw(replace(case, rows=rows), 0)
        model = fit(drawn.columns, scale)
        answer = model.predict(_columns(drawn.points[0]), PredictOptions(samples=200))
        variances.append(float(answer.variance["epistemic"].mean()))
    return Check(
        f"{case.name}, {case.features} feature: epistemic variance among {many:,} rows ÷ that "
        f"among {few:,}",
        f"at most {2 * few / many:g}",
        variances[1] / variances[0],
        0,
        2 * few / many,
    )
