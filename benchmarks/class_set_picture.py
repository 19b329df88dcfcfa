"""The picture of the guide to sets of classes: three classes in a plane, and their sets of 95 %.

python -m benchmarks.class_set_picture docs/images/sets-of-classes.svg
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from benchmarks.pictures import picture
from credence.estimators import BayesianClassifier

ROWS, LEVEL, POINTS = 1_500, 0.95, 110
CENTRES = np.array([[-1.2, -0.6], [1.2, -0.6], [0.0, 1.3]])
COLOURS = ("#1f77b4", "#ff7f0e", "#3a8f5c")
SIZES = ListedColormap(["#ffffff", "#d9d9d9", "#9a9a9a"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    random, path = np.random.default_rng(0), parser.parse_args().path
    label = random.integers(0, 3, ROWS)
    x = CENTRES[label] + random.normal(0, 0.85, (ROWS, 2))
    model = BayesianClassifier(hidden=(32,), epochs=60, pruning=(), random_state=0).fit(x, label)
    with picture(path, 1, 2, (9.0, 4.2)) as ((left, right),):
        _rows(left, x, label)
        _sets(right, model)


def _rows(axes: Axes, x: np.ndarray, label: np.ndarray) -> None:
    for k, colour in enumerate(COLOURS):
        some = x[label == k][:120]
        axes.scatter(
            *some.T, s=7, color=colour, alpha=0.7, linewidths=0, label=f"diagnosis {k + 1}"
        )
    axes.set_title("Rows of three classes that overlap")
    axes.legend(loc="upper left", fontsize=8, frameon=False)
    _frame(axes)


def _sets(axes: Axes, model: BayesianClassifier) -> None:
    """The number of classes of each point's conformal set, and the classes' regions."""
    at = np.linspace(-3.5, 3.5, POINTS)
    grid = np.stack(np.meshgrid(at, at), axis=-1).reshape(-1, 2)
    members = model.predict_set(grid, LEVEL, "conformal")
    sizes = members.sum(1).reshape(POINTS, POINTS)
    axes.contourf(at, at, sizes, levels=(0.5, 1.5, 2.5, 3.5), cmap=SIZES)
    for k, colour in enumerate(COLOURS):
        inside = members[:, k].reshape(POINTS, POINTS).astype(float)
        axes.contour(at, at, inside, levels=(0.5,), colors=[colour], linewidths=1.6)
        axes.text(*CENTRES[k] * 1.5, f"{k + 1}", color=colour, fontsize=15, ha="center")
    axes.set_title("Sets of 95 %: one class (white), two, three (dark)")
    _frame(axes)


def _frame(axes: Axes) -> None:
    axes.set(xlim=(-3.5, 3.5), ylim=(-3.5, 3.5), xticks=(), yticks=(), aspect="equal")


if __name__ == "__main__":
    main()
