"""The pictures of docs/concepts.md: both uncertainties, and how they change with more rows.

    python -m examples.concepts docs/images

The data are simulated: a bent line, the same noise everywhere, and no rows outside −3 to 3.
Takes a minute on two cores.
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

EDGE = 3.0  # no rows are further from 0
GRID = np.linspace(-6, 6, 300)
FEW, MANY = 60, 1000
EPOCHS = {FEW: 2500, MANY: 500}  # one step per epoch with FEW rows, four with MANY


def mean(x: np.ndarray) -> np.ndarray:
    """The true mean."""
    return 2 * np.hypot(1, x) + x


def measure(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a noise of 0.5 around the mean."""
    random = np.random.default_rng(1)
    x = random.uniform(-EDGE, EDGE, rows)
    return x, mean(x) + 0.5 * random.standard_normal(rows)


def fit(rows: int, *hidden: int) -> BayesianRegressor:
    """The recommended recipe, with a likelihood whose noise is the same everywhere."""
    x, y = measure(rows)
    model = BayesianRegressor(
        hidden=hidden, likelihood="homoscedastic", epochs=EPOCHS[rows], pruning=(), random_state=0
    )
    return model.fit(x[:, None], y)


def draw_band(axes: Axes, model: BayesianRegressor, rows: int) -> None:
    """The mean, the noise around it, and the total around both."""
    x, y = measure(rows)
    predicted = model.predict(GRID[:, None])
    found = model.predict_uncertainty(GRID[:, None])
    for variance, colour, label in (
        (found.total, ORANGE, "total: noise and epistemic"),
        (found.aleatoric, BLUE, "noise (aleatoric)"),
    ):
        half = 1.645 * np.sqrt(variance)  # 90 %
        axes.fill_between(GRID, predicted - half, predicted + half, color=colour, alpha=0.3, lw=0)
        axes.plot([], [], color=colour, alpha=0.4, lw=8, label=label)
    axes.plot(GRID, predicted, color=BLUE, label="predicted mean")
    axes.plot(GRID, mean(GRID), color="black", lw=1, ls="--", label="true mean")
    axes.plot(x, y, ".", color=GREY, ms=4 if rows == FEW else 2, alpha=0.7, label="measured")
    axes.set(title=f"{rows:,} rows", xlabel="x", ylim=(-4, 21))


def shade_unmeasured(axes: Axes) -> None:
    """Grey where there are no rows."""
    for start, end in ((GRID[0], -EDGE), (EDGE, GRID[-1])):
        axes.axvspan(start, end, color=GREY, alpha=0.12, lw=0)
    axes.margins(x=0)


def bands(path: Path, models: dict[int, BayesianRegressor]) -> None:
    """Few rows and many: noise stays, epistemic uncertainty shrinks."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
        for place, (rows, model) in zip(axes, models.items(), strict=True):
            draw_band(place, model, rows)
            shade_unmeasured(place)
            for middle in (-4.5, 4.5):
                place.text(middle, -3, "no rows", ha="center", color=GREY, size="small")
        axes[0].set_ylabel("y")
        axes[1].legend(loc="upper right", bbox_to_anchor=(0.8, 1))
        figure.savefig(path, dpi=110)


def measure_classes() -> tuple[np.ndarray, np.ndarray]:
    """Two crescents that overlap; labels in the overlap are noisy."""
    random = np.random.default_rng(2)
    angle = random.uniform(0, np.pi, (2, 150))
    upper = np.column_stack([np.cos(angle[0]), np.sin(angle[0])])
    lower = np.column_stack([1 - np.cos(angle[1]), 0.4 - np.sin(angle[1])])
    points = np.concatenate([upper, lower]) + random.normal(0, 0.22, (300, 2))
    return points, np.repeat([0, 1], 150)


def classes(path: Path) -> None:
    """Aleatoric entropy where the classes overlap, epistemic entropy where there are no rows."""
    points, labels = measure_classes()
    model = BayesianClassifier(hidden=(50,), epochs=1000, pruning=(), random_state=0).fit(
        points, labels
    )
    x, y = np.meshgrid(np.linspace(-3.5, 4.5, 90), np.linspace(-3.2, 3.6, 90))
    found = model.predict_uncertainty(np.column_stack([x.ravel(), y.ravel()]))
    titles = ("noise: the classes overlap (aleatoric)", "no rows here (epistemic)")
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
        for place, title, nats in zip(axes, titles, found[:2], strict=True):
            drawn = place.contourf(x, y, nats.reshape(x.shape), 12, cmap="Blues", vmin=0)
            figure.colorbar(drawn, ax=place, label="nats")
            for label, colour in enumerate((ORANGE, "black")):
                own = points[labels == label]
                place.plot(*own.T, ".", color=colour, ms=3)
            place.set_title(title)
        figure.savefig(path, dpi=110)


def samples(path: Path, model: BayesianRegressor) -> None:
    """The same deviation, estimated from 1, 10 and 100 samples."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained", sharey=True)
        for place, count in zip(axes, (1, 10, 100), strict=True):
            model.set_params(samples=count)
            deviation = np.sqrt(model.predict_uncertainty(GRID[:, None]).epistemic)
            place.plot(GRID, deviation, color=ORANGE)
            shade_unmeasured(place)
            place.set(title=f"{count} sample{'s' * (count > 1)}", xlabel="x")
        axes[0].set_ylabel("epistemic standard deviation")
        figure.savefig(path, dpi=110)


def main() -> None:
    """Draw all pictures into the folder given as argument."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m examples.concepts FOLDER")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    models = {rows: fit(rows, 50) for rows in (FEW, MANY)}
    bands(folder / "concepts-band.png", models)
    samples(folder / "concepts-samples.png", fit(FEW, 50, 50))
    classes(folder / "concepts-classes.png")


if __name__ == "__main__":
    main()
