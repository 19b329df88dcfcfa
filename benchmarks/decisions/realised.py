"""What decisions turn out to cost, and what was expected."""

from typing import Any

import numpy as np

from benchmarks.decisions.data_sets import CLASSES, DataSet
from credence.estimators import BayesianClassifier, BayesianRegressor

RATIOS = (1.0, 5.0, 20.0)  # how much more it costs to miss the rarest class
PER_UNIT = ((1.0, 1.0), (1.0, 4.0), (4.0, 1.0), (1.0, 20.0))  # over, under
ASKING = 0.5  # the cost of asking a person ÷ the mean expected cost of acting

Json = dict[str, Any]


def realised(data: DataSet, epochs: int | None) -> Json:
    """The mean costs on held-out rows, by costs.

    Args:
        epochs: of one network with 50 units; None for the default recipe.
    """
    settings: Json = {"pruning": ()}
    if epochs is not None:
        settings |= {"hidden": (50,), "epochs": epochs}
    if data.task == CLASSES:
        model = BayesianClassifier(**settings).fit(data.x, data.y)
        costs = [_of_classes(model, data, ratio) for ratio in RATIOS]
    else:
        regressor = BayesianRegressor(**settings).fit(data.x, data.y)
        costs = [_of_numbers(regressor, data, *each) for each in PER_UNIT]
    return {"name": data.name, "task": data.task, "rows": len(data.test_y), "costs": costs}


def _of_classes(model: BayesianClassifier, data: DataSet, ratio: float) -> Json:
    names = [str(name) for name in model.classes_]
    place = {name: k for k, name in enumerate(names)}
    counts = [np.sum(data.y == name) for name in names]
    matrix = 1.0 - np.eye(len(names))
    matrix[:, int(np.argmin(counts))] *= ratio
    known = np.isin(data.test_y, names)
    truth = np.array([place[name] for name in data.test_y[known]])
    x = data.test_x[known]
    found = model.decide(x, {"matrix": matrix.tolist()})
    chosen = np.array([place[str(name)] for name in found.action])
    usual = np.array([place[str(name)] for name in model.predict(x)])
    cost = matrix[chosen, truth]
    return {"costs": f"{ratio:g} : 1"} | _summary(cost, matrix[usual, truth], found.expected_cost)


def _of_numbers(model: BayesianRegressor, data: DataSet, over: float, under: float) -> Json:
    found = model.decide(data.test_x, {"over": over, "under": under})

    def cost(action: np.ndarray) -> np.ndarray:
        above = np.maximum(action - data.test_y, 0)
        return over * above + under * np.maximum(data.test_y - action, 0)

    mean = cost(model.predict(data.test_x))
    name = f"{over:g} over, {under:g} under"
    return {"costs": name} | _summary(cost(np.asarray(found.action)), mean, found.expected_cost)


def _summary(cost: np.ndarray, usual: np.ndarray, expected: np.ndarray) -> Json:
    """Means over the rows.

    `asking` is the mean cost if a person, who is right, is asked where that is expected to cost
    less; `asking_first` if so many rows are chosen at random.
    """
    price = ASKING * float(expected.mean())
    asked = expected > price
    return {
        "decisions": float(cost.mean()),
        "usual": float(usual.mean()),
        "expected": float(expected.mean()),
        "saved_error": float((usual - cost).std() / np.sqrt(len(cost))),
        "cost_error": float(cost.std() / np.sqrt(len(cost))),
        "asked": float(asked.mean()),
        "asking": float(np.where(asked, price, cost).mean()),
        "asking_at_random": float(asked.mean() * price + (1 - asked.mean()) * cost.mean()),
    }
