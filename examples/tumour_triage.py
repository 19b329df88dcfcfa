"""Which tumours should a doctor look at? A classifier that may abstain.

    python -m examples.tumour_triage --picture triage.svg

A missed malignant tumour costs 20, a needless operation 4, a doctor's look 1. The model is trained
on 200 of scikit-learn's tumours, and decides for the other 369 in three ways: by the most probable
class; by what costs least; by what costs least, where a doctor's look is a third choice.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer

from credence.estimators import BayesianClassifier
from examples.demo_parts.costs import (
    BLUE,
    GREY,
    ORANGE,
    compare_costs,
    draw_costs,
    options,
    picture,
)

MISSED, NEEDLESS, LOOK = 20.0, 4.0, 1.0
TRAINED = 200


def cost(operate: np.ndarray, malignant: np.ndarray, ask: np.ndarray | bool = False) -> np.ndarray:
    """What each tumour costs: a doctor who looks is right."""
    wrong = np.where(malignant, MISSED, NEEDLESS) * (operate != malignant)
    return np.where(ask, LOOK, wrong)


def main() -> None:
    """Train, decide for new tumours, compare the costs."""
    asked = options(__doc__, epochs=60)
    data = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(data.target))
    train, test = order[:TRAINED], order[TRAINED:]
    names = np.where(data.target == 0, "malignant", "benign")
    settings = {"hidden": (20,), "epochs": asked.epochs, "pruning": (), "random_state": 0}
    model = BayesianClassifier(**settings).fit(data.data[train], names[train])
    new, truth = data.data[test], data.target[test] == 0
    probability = model.predict_proba(new)[:, 1]
    matrix = [[0.0, MISSED], [NEEDLESS, 0.0]]  # wait, operate × benign, malignant
    decision = model.decide(
        new, {"matrix": matrix, "actions": ["wait", "operate"], "abstain": LOOK}
    )
    operate, ask = np.asarray(decision.action) == "operate", np.asarray(decision.ask)
    costs = {
        "most probable class": cost(probability > 0.5, truth),
        "costs": cost(operate, truth),
        "costs, may abstain": cost(operate, truth, ask),
    }
    compare_costs(costs, "tumour")
    print(f"a doctor looks at {ask.sum()} of {len(test)} tumours")
    if asked.picture:
        figure, (left, right) = picture()
        grid = np.linspace(0, 1, 200)
        left.plot(grid, MISSED * grid, color=BLUE, label="wait")
        left.plot(grid, NEEDLESS * (1 - grid), color=GREY, label="operate")
        left.axhline(LOOK, color=ORANGE, label="a doctor looks")
        least = np.minimum(MISSED * probability, NEEDLESS * (1 - probability))
        left.plot(probability, np.minimum(least, LOOK), "|", color="black", label="tumours")
        left.set(ylim=(-0.2, 4.5), xlabel="probability of malignant", ylabel="expected cost")
        left.set_title("What each choice is expected to cost")
        left.legend()
        draw_costs(right, costs, "tumour")
        figure.savefig(asked.picture, metadata={"Date": None})


if __name__ == "__main__":
    main()
