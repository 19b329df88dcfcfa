"""Expected scores of trained models, on generated rows whose distribution is known."""

import math

import numpy as np
import pytest

from models.config import MLPConfig, TrainingConfig
from models.expected_scores.expectation import Expectation, expect
from models.features.columns import Columns
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.tabular.unlabelled import simulate
from tests.models.training.fitting import trained

ROWS, NEW = 1_000, 1_000
OPTIONS = PredictOptions(samples=100, intervals=())


def table(rows: int, low: float, seed: int) -> Columns:
    """y = sin 2x + 0.3 e^x · noise, and a class that is "b" with probability 1/(1 + e^(−4x))."""
    random = np.random.default_rng(seed)
    x = random.uniform(low, 1, rows)
    y = np.sin(2 * x) + 0.3 * np.exp(x) * random.normal(size=rows)
    kind = np.where(random.random(rows) < 1 / (1 + np.exp(-4 * x)), "b", "a").astype(object)
    return {"x": x, "y": y, "kind": kind}


def fit(target: str) -> TabularModel:
    columns = {name: table(ROWS, -1, 0)[name] for name in ("x", target)}
    return trained(
        columns,
        target=target,
        network=MLPConfig(hidden=(20,)),
        training=TrainingConfig(epochs=20, batch_size=64, learning_rate=0.02, background=0),
        pruning=(),
        likelihood="heteroscedastic" if target == "y" else None,
    )


@pytest.fixture(scope="module")
def regression() -> TabularModel:
    return fit("y")


def expected(model: TabularModel, columns: Columns) -> dict[str, Expectation]:
    truth = columns.get(model.config.target)
    found = simulate(model, model.encode(columns), OPTIONS, truth)
    return expect(found, model.variant(0.0).promise, 0.9)


def test_the_error_of_shifted_rows_is_expected_without_their_labels(
    regression: TabularModel,
) -> None:
    """The noise variance of x even on [0.4, 1] is 0.09 (e² − e^0.8) / 1.2 on average."""
    columns = table(NEW, 0.4, 1)
    found = expected(regression, {"x": columns["x"]})
    true = 0.3 * math.sqrt((math.exp(2) - math.exp(0.8)) / 1.2)
    assert found["rmse"].lower < true < found["rmse"].upper
    assert found["rmse"].leaves
    held_out = 0.3 * math.sqrt((math.exp(2) - math.exp(-2)) / 4)
    assert found["rmse"].promised == pytest.approx(held_out, rel=0.3)  # of 100 rows
    assert found["rmse"].actual is None
    beside = expected(regression, columns)["rmse"]
    assert beside.actual is not None
    assert (beside.expected, beside.lower) == (found["rmse"].expected, found["rmse"].lower)
    assert beside.lower < beside.actual < beside.upper
