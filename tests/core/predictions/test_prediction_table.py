"""A prediction as a table: the columns, their types, and nulls where nothing can be told."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from core.predictions.prediction_table import to_table
from models.prediction.answers.reasons import COMBINATION, Levels, Range, Reason
from models.prediction.declared_outputs import CLASS, LEVEL
from models.prediction.prediction import ClassName, RowPrediction

NUMBERS = RowPrediction(
    task="regression",
    samples=100,
    seed=7,
    sampler="monte_carlo",
    prune=0.5,
    coordinates={LEVEL: (0.5, 0.9)},
    values={
        "mean": np.array([1.0, 2.0]),
        "aleatoric_variance": np.array([0.1, 0.2]),
        "epistemic_variance": np.array([0.3, 0.4]),
        "total_variance": np.array([0.4, 0.6]),
        "out_of_distribution": np.array([False, True]),
        "ood_score": np.array([0.3, np.inf]),
        "lower": np.array([[0.5, 0.0], [1.5, 1.0]]),
        "upper": np.array([[1.5, 2.0], [np.inf, 3.0]]),
        "conformal_lower": np.array([[0.4, -1.0], [1.4, -np.inf]]),
        "conformal_upper": np.array([[1.6, 3.0], [2.6, np.inf]]),
        "mc_error": np.array([0.01, np.nan]),
    },
)


def classes(*names: ClassName) -> RowPrediction:
    probabilities = np.array([[0.25, 0.75], [0.5, 0.5]])
    entropy = np.array([0.5, 0.6])
    intervals = ("lower", "upper", "conformal_lower", "conformal_upper")
    found = replace(
        NUMBERS, task="classification", coordinates={CLASS: names}, constants={"classes": names}
    )
    return found.without(*intervals).with_values(
        mean=probabilities,
        mc_error=probabilities / 100,
        label=[names[1], names[0]],
        predictive_entropy=entropy,
        expected_entropy=entropy / 2,
        mutual_information=entropy / 3,
    )


@pytest.mark.parametrize(
    ("names", "columns", "type_"),
    [
        ((False, True), ("false", "true"), pa.bool_()),
        ((0, 1), ("0", "1"), pa.int64()),
        ((0, int(1e30)), ("0", str(int(1e30))), pa.float64()),
    ],
)
def test_labels_keep_the_type_of_the_classes(
    names: tuple[ClassName, ...], columns: tuple[str, ...], type_: pa.DataType
) -> None:
    table = to_table(classes(*names))
    assert table.column_names[1:3] == [f"probability_{column}" for column in columns]
    assert table.schema.field("label").type == type_
    assert table.column("label").to_pylist() == [names[1], names[0]]


def test_reasons_have_one_type_whatever_the_columns() -> None:
    """Values of all types are texts, so that tables of chunks can be joined."""
    age = Reason("age", "out_of_range", 900, Range(17, 90))
    job = Reason("job", "unseen_level", "pilot", Levels(("baker", "nurse"), 2))
    paid = Reason("paid", "missing_unseen", None, Levels((False,), 1))
    tables = [
        to_table(NUMBERS.with_values(reasons=rows))
        for rows in ([(), (age, job)], [(COMBINATION,), (paid,)], [(), ()])
    ]
    assert len({table.schema for table in tables}) == 1
    none, both, whole, missing, *_ = pa.concat_tables(tables)["reasons"].to_pylist()
    assert none == []
    assert [one["value"] for one in both] == ["900", "pilot"]
    assert both[0]["seen"] == {"lowest": "17", "highest": "90", "levels": None, "count": None}
    assert both[1]["seen"] == {
        "lowest": None, "highest": None, "levels": ["baker", "nurse"], "count": 2,
    }  # fmt: skip
    assert (whole[0]["column"], whole[0]["seen"]) == (None, None)
    assert missing[0]["seen"]["levels"] == ["false"]
