"""The picture of docs/how-to/decisions.md: what to stock, and when to ask a person.

    python -m examples.decisions docs/images

The demand is simulated; the tumours are scikit-learn's. Takes some seconds.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot: no display is needed

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from sklearn.datasets import load_breast_cancer

from credence.estimators import BayesianClassifier, BayesianRegressor
from examples.demo_parts.pictures import BLUE, GREY, ORANGE, STYLE

GREEN = "#3a8f5c"
STOCK = {"over": 1.0, "under": 4.0}
MISSED, NEEDLESS, PERSON = 20.0, 4.0, 1.0  # costs
TRAINED = 300  # tumours


def draw_stock(axes: Axes) -> None:
    """Demand, its mean, and the stock that costs least."""
    random = np.random.default_rng(0)
    warmth = random.uniform(0, 30, 600)
    demand = random.poisson(random.gamma(4, (5 + 1.5 * warmth) / 4)).astype(float)
    settings = {"likelihood": {"kind": "count", "scale": "log"}, "epochs": 150, "pruning": ()}
    model = BayesianRegressor(hidden=(20,), **settings).fit(warmth[:, None], demand)
    grid = np.linspace(0, 30, 100)[:, None]
    axes.plot(warmth, demand, ".", color=GREY, markersize=3, label="demand")
    axes.plot(grid, model.predict(grid), color=BLUE, label="mean")
    axes.plot(grid, model.decide(grid, STOCK).action, color=ORANGE, label="stock that costs least")
    axes.set(
        xlabel="temperature", ylabel="bikes", title="One too few costs four times one too many"
    )
    axes.legend()


def draw_tumours(axes: Axes) -> None:
    """The expected costs of three actions, and those of held-out rows."""
    data = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(data.target))
    train, test = order[:TRAINED], order[TRAINED:]
    names = np.where(data.target == 0, "malignant", "benign")
    settings = {"hidden": (20,), "epochs": 100, "pruning": ()}
    model = BayesianClassifier(**settings).fit(data.data[train], names[train])
    matrix = [[0.0, MISSED], [NEEDLESS, 0.0]]  # wait, operate × benign, malignant
    costs = {"matrix": matrix, "actions": ["wait", "operate"], "abstain": PERSON}
    found = model.decide(data.data[test], costs)
    assert found.ask is not None
    malignant = model.predict_proba(data.data[test])[:, 1]
    grid = np.linspace(0, 1, 200)
    axes.plot(grid, MISSED * grid, color=BLUE, label="wait")
    axes.plot(grid, NEEDLESS * (1 - grid), color=ORANGE, label="operate")
    axes.axhline(PERSON, color=GREEN, label="ask a person")
    paid = np.where(found.ask, PERSON, found.expected_cost)
    axes.plot(malignant, paid, "|", color=GREY, markersize=12, label="tumours")
    axes.set(ylim=(-0.3, 5), xlabel="probability of malignant", ylabel="expected cost")
    axes.set_title(f"{found.ask.sum()} of {len(test)} tumours are for a person")
    axes.legend()


def main(folder: Path) -> None:
    with plt.rc_context(STYLE | {"svg.hashsalt": "decisions", "svg.fonttype": "none"}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
        draw_stock(left)
        draw_tumours(right)
        figure.savefig(folder / "decisions.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
