"""The pictures of docs/concepts.md: what the noise is, what ignorance is, and what becomes of both.

    python -m examples.concepts docs/images

Data whose truth we know: the mean is a sine, the noise grows to the right, and in the middle nobody
has measured anything. A minute on two cores.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot: no display is needed

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from credence.estimators import BayesianClassifier, BayesianRegressor
from examples.demo_parts.pictures import BLUE, GREY, ORANGE, STYLE

GAP = (0.5, 2.0)  # where nothing was measured
GRID = np.linspace(-4.5, 6.5, 300)
FEW, MANY = 150, 3000


def mean(x: np.ndarray) -> np.ndarray:
    """What is true on average."""
    return 2 * np.sin(1.2 * x) + 0.3 * x


def noise(x: np.ndarray) -> np.ndarray:
    """The standard deviation around it."""
    return 0.15 + 0.5 / (1 + np.exp(-2 * (x - 3)))


def measure(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows outside the gap."""
    random = np.random.default_rng(1)
    x = random.uniform(-3.5, 5.0, 3 * rows)
    x = x[(x < GAP[0]) | (x > GAP[1])][:rows]
    return x, mean(x) + noise(x) * random.standard_normal(rows)


def draw_band(axes: Axes, rows: int) -> None:
    """The mean, the noise around it, and around that what the model does not know."""
    x, y = measure(rows)
    model = BayesianRegressor(hidden=(50,), random_state=0).fit(x[:, None], y)
    predicted = model.predict(GRID[:, None])
    found = model.predict_uncertainty(GRID[:, None])
    for variance, colour, label in (
        (found.total, ORANGE, "with ignorance (total)"),
        (found.aleatoric, BLUE, "noise (aleatoric)"),
    ):
        half = 1.645 * np.sqrt(variance)
        axes.fill_between(GRID, predicted - half, predicted + half, color=colour, alpha=0.3, lw=0)
        axes.plot([], [], color=colour, alpha=0.4, lw=8, label=label)
    axes.plot(GRID, predicted, color=BLUE, label="predicted mean")
    axes.plot(GRID, mean(GRID), color="black", lw=1, ls="--", label="true mean")
    axes.plot(x[:FEW], y[:FEW], ".", color=GREY, ms=4, alpha=0.7, label="measured")
    axes.set(title=f"{rows:,} rows", xlabel="x", ylim=(-6, 7))


def bands(path: Path) -> None:
    """Few rows and many: the noise stays, ignorance goes where there are data."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
        for place, rows in zip(axes, (FEW, MANY), strict=True):
            draw_band(place, rows)
            place.axvspan(*GAP, color=GREY, alpha=0.12, lw=0)
            place.text(sum(GAP) / 2, 6.3, "nobody\nmeasured", ha="center", va="top", color=GREY)
        axes[0].set_ylabel("y")
        axes[0].legend(loc="lower left")
        figure.savefig(path, dpi=130)


def measure_classes() -> tuple[np.ndarray, np.ndarray]:
    """Two crescents that overlap: in between the labels are noisy."""
    random = np.random.default_rng(2)
    angle = random.uniform(0, np.pi, (2, 150))
    upper = np.column_stack([np.cos(angle[0]), np.sin(angle[0])])
    lower = np.column_stack([1 - np.cos(angle[1]), 0.4 - np.sin(angle[1])])
    points = np.concatenate([upper, lower]) + random.normal(0, 0.22, (300, 2))
    return points, np.repeat([0, 1], 150)


def classes(path: Path) -> None:
    """Where the data are mixed, and where there are none."""
    points, labels = measure_classes()
    model = BayesianClassifier(hidden=(50,), random_state=0).fit(points, labels)
    x, y = np.meshgrid(np.linspace(-3.5, 4.5, 90), np.linspace(-3.2, 3.6, 90))
    found = model.predict_uncertainty(np.column_stack([x.ravel(), y.ravel()]))
    titles = ("noise: the classes overlap (aleatoric)", "ignorance: nothing was seen (epistemic)")
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
        for place, title, nats in zip(axes, titles, found[:2], strict=True):
            drawn = place.contourf(x, y, nats.reshape(x.shape), 12, cmap="Blues", vmin=0)
            figure.colorbar(drawn, ax=place, label="nats")
            for label, colour in enumerate((ORANGE, "black")):
                own = points[labels == label]
                place.plot(*own.T, ".", color=colour, ms=3)
            place.set_title(title)
        figure.savefig(path, dpi=130)


def samples(path: Path) -> None:
    """What a number of samples costs in accuracy: the same band from 1, 10 and 100 of them."""
    x, y = measure(FEW)
    model = BayesianRegressor(hidden=(50,), random_state=0).fit(x[:, None], y)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained", sharey=True)
        for place, count in zip(axes, (1, 10, 100), strict=True):
            model.set_params(samples=count)
            deviation = np.sqrt(model.predict_uncertainty(GRID[:, None]).epistemic)
            place.plot(GRID, deviation, color=ORANGE)
            place.axvspan(*GAP, color=GREY, alpha=0.12, lw=0)
            place.set(title=f"{count} sample{'s' * (count > 1)}", xlabel="x")
        axes[0].set_ylabel("epistemic standard deviation")
        figure.savefig(path, dpi=130)


def main() -> None:
    """All pictures, into the folder that is named."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m examples.concepts FOLDER")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    bands(folder / "concepts-band.png")
    classes(folder / "concepts-classes.png")
    samples(folder / "concepts-samples.png")


if __name__ == "__main__":
    main()
