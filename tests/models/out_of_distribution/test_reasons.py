"""Each flagged row says why: constructed rows whose strange column is known."""

import numpy as np
import pytest

from models.config import MLPConfig, TrainingConfig
from models.features.columns import Columns
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from tests.models.training.fitting import trained

JOBS = ("baker", "nurse", "pilot")
OPTIONS = PredictOptions(samples=8)


def people(rows: int, seed: int, *, classes: bool) -> dict[str, np.ndarray]:
    """Whole ages and hours; most gains are 0, as in the census."""
    random = np.random.default_rng(seed)
    age, hours = random.integers(17, 91, rows), random.integers(1, 100, rows)
    job = random.integers(0, 3, rows)
    income = age / 30 + hours / 40 + job + random.normal(size=rows)
    gains = np.where(random.random(rows) < 0.9, 0, random.integers(100, 99_999, rows))
    return {
        "age": age.astype(float),
        "hours": hours.astype(float),
        "job": np.array(JOBS, object)[job],
        "gains": gains.astype(float),
        "day": np.datetime64("2026-01-01", "us")
        + random.integers(0, 365, rows) * np.timedelta64(1, "D"),
        "y": np.where(income > 3.5, "rich", "poor").astype(object) if classes else income,
    }


def fit(*, classes: bool) -> TabularModel:
    network = MLPConfig(hidden=(8,))
    training = TrainingConfig(epochs=4, fine_tune_epochs=1, background=0)
    columns = people(1_500, 0, classes=classes)
    return trained(columns, network=network, training=training, pruning=())


@pytest.fixture(scope="module", params=[False, True], ids=["regression", "classification"])
def model(request: pytest.FixtureRequest) -> TabularModel:
    return fit(classes=request.param)


def strange(classes: bool) -> tuple[Columns, list[tuple[str, str, object]]]:
    """Rows with one strange value each, and its column, code and value."""
    rows = people(7, 3, classes=classes)
    rows["age"][0], rows["hours"][1], rows["job"][2] = 900, 5_000, "astronaut"
    rows["gains"][3], rows["age"][4], rows["job"][5] = 1e8, np.nan, None
    rows["day"][6] = np.datetime64("2035-06-01T12:30", "us")
    return rows, [
        ("age", "out_of_range", 900),
        ("hours", "out_of_range", 5_000),
        ("job", "unseen_level", "astronaut"),
        ("gains", "out_of_range", 100_000_000),
        ("age", "missing_unseen", None),
        ("job", "missing_unseen", None),
        ("day", "out_of_range", "2035-06-01T12:30:00Z"),
    ]


def reasons_of(prediction: RowPrediction) -> list[list[dict[str, object]]]:
    return [[reason.document() for reason in row] for row in prediction["reasons"]]


def test_strange_rows_are_flagged_and_their_column_is_named_first(model: TabularModel) -> None:
    rows, expected = strange(model.classes is not None)
    answer = model.predict(rows, OPTIONS)
    assert answer.out_of_distribution.all()
    first = [found[0] for found in reasons_of(answer)]
    assert [(one["column"], one["code"], one["value"]) for one in first] == expected
