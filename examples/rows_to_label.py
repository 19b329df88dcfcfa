"""The picture of docs/how-to/label.md: the rows that a model chooses, beside rows by chance.

    python -m examples.rows_to_label docs/images/label.svg

Two crescents of generated rows. Forty have a label, all of them on the left. Takes some seconds.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot: no display is needed

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.contour import QuadContourSet
from sklearn.datasets import make_moons

from credence.estimators import BayesianClassifier
from examples.demo_parts.pictures import BLUE, GREY, ORANGE, STYLE
from models.evaluation import acquisition
from models.prediction.options import PredictOptions

ROWS, LABELLED, CHOSEN, POINTS = 600, 40, 15, 80
ACROSS, UP = np.linspace(-2, 3, POINTS), np.linspace(-1.5, 2, POINTS)


def information(model: BayesianClassifier, x: np.ndarray) -> np.ndarray:
    """What the label of each row would tell about the weights, in nats."""
    encoded = model.model_.encode({"x0": x[:, 0], "x1": x[:, 1]})
    return acquisition.information(model.model_.informed(encoded, PredictOptions())).numpy()


def draw(
    axes: Axes, x: np.ndarray, y: np.ndarray, wanted: np.ndarray, tells: np.ndarray
) -> QuadContourSet:
    """The pool, its labelled rows, and the rows that get a label next."""
    shown = axes.contourf(ACROSS, UP, tells, levels=8, cmap="Greens", alpha=0.7)
    axes.plot(*x[LABELLED:].T, ".", color=GREY, markersize=3, label="no label")
    for k, colour in enumerate((BLUE, ORANGE)):
        some = x[:LABELLED][y[:LABELLED] == k]
        axes.plot(*some.T, "o", color=colour, markersize=5, label=f"class {k + 1}")
    axes.plot(
        *x[wanted].T, "o", color="black", fillstyle="none", markersize=9, label="label next"
    )  # fmt: skip
    axes.set(xlim=(-2, 3), ylim=(-1.5, 2), xticks=(), yticks=())
    return shown


def main(path: Path) -> None:
    x, y = make_moons(ROWS, noise=0.2, random_state=0)
    order = np.argsort(x[:, 0] > 0.5, kind="stable")  # those on the left first
    x, y = x[order], y[order]
    model = BayesianClassifier(hidden=(32,), epochs=300, pruning=(), random_state=0)
    model.fit(x[:LABELLED], y[:LABELLED])
    chosen = LABELLED + model.choose_rows(x[LABELLED:], CHOSEN)
    chance = np.random.default_rng(0).choice(np.arange(LABELLED, ROWS), CHOSEN, replace=False)
    grid = np.stack(np.meshgrid(ACROSS, UP), axis=-1).reshape(-1, 2)
    tells = information(model, grid).reshape(POINTS, POINTS)
    with plt.rc_context(STYLE | {"svg.hashsalt": "label", "svg.fonttype": "none"}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
        draw(left, x, y, chosen, tells)
        shown = draw(right, x, y, chance, tells)
        left.set_title(f"{CHOSEN} rows that the model chooses")
        right.set_title(f"{CHOSEN} rows by chance")
        left.legend(loc="lower left", fontsize=8)
        figure.colorbar(shown, ax=[left, right], label="what a label tells (nats)", pad=0.01)
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
