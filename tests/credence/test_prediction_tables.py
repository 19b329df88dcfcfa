"""Predictions as tables of the terminal, as CSV, and by the names that Python reads."""

import csv
import io
from typing import Any

import pyarrow as pa
import pytest

from core.predictions.window_check import check_window, verdict
from core.predictions.window_check import leaves as leaves_by_service
from credence.client.arrow import Column, Table, from_stream, to_stream
from credence.commands.files.predictions import write_csv
from credence.commands.prediction_table import print_prediction
from credence.feedback_verdict import leaves, sentence
from credence.types import RollingFeedback
from models.evaluation.metrics import PerRowScores
from tests.core.predictions.test_window_check import HELD_OUT, numbers

ABOUT = {"model": "m", "version": "1", "prune": "0.0", "samples": "100"}
MOMENTS: dict[str, float | None] = {
    "mean": 2.0, "aleatoric_variance": 0.5, "epistemic_variance": 0.5, "total_variance": 1.0,
}  # fmt: skip


def table_of(numbers: dict[str, float | None]) -> Table:
    """A prediction of one usual row."""
    columns = {name: Column("number", [value]) for name, value in (MOMENTS | numbers).items()}
    columns["out_of_distribution"] = Column("boolean", [False])
    table = from_stream(to_stream(columns))
    table.metadata |= ABOUT
    return table


def row_and_shown(table: Table, capsys: pytest.CaptureFixture[str]) -> tuple[Any, str]:
    """The one line of CSV, and the words of the table."""
    write_csv(table, 1)
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    print_prediction(table, 1)
    return row, " ".join(capsys.readouterr().out.split())


def test_conformal_intervals_have_columns_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    intervals = {
        "lower_0.9": 1.0, "upper_0.9": 3.0, "conformal_lower_0.9": 0.5, "conformal_upper_0.9": 3.5,
        "conformal_lower_0.99": None, "conformal_upper_0.99": None, "ood_score": 0.5,
    }  # fmt: skip
    row, shown = row_and_shown(table_of(intervals), capsys)
    cells = (row["lower_0.9"], row["conformal_lower_0.9"], row["conformal_upper_0.99"])
    assert cells == ("1.0", "0.5", "")
    assert "unbounded" in shown
    assert "0.5 to 3.5" in shown


def test_sets_of_classes_are_json_in_csv_and_names_in_a_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    columns: dict[str, Any] = {
        "label": ["ash"], "probability_ash": [0.6], "expected_entropy": [0.5],
        "mutual_information": [0.1], "out_of_distribution": [False],
        "set_0.9": [["ash", "elm"]], "conformal_set_0.9": [["ash"]],
    }  # fmt: skip
    rows, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema.with_metadata(ABOUT)) as writer:
        writer.write_table(rows)
    row, shown = row_and_shown(from_stream(sink.getvalue().to_pybytes()), capsys)
    assert (row["set_0.9"], row["conformal_set_0.9"]) == ('["ash", "elm"]', '["ash"]')
    assert "ash, elm" in shown


def rolling(
    scores: PerRowScores, labels: int, window: int = 1000, **held_out: Any
) -> RollingFeedback:
    check = check_window(scores, labels, window, [held_out or HELD_OUT])
    return {"model": "m", "version": 1, "window": window, "metrics": {"check": check}}


@pytest.mark.parametrize(
    ("inside", "rows"), [(0.48, 100), (0.7, 1000), (0.85, 198), (0.9, 1000), (1.0, 198)]
)
def test_intervals_are_judged_as_by_the_service(inside: float, rows: int) -> None:
    found = rolling(numbers(rows, inside), rows)
    check = found["metrics"]["check"]
    assert leaves(found) == leaves_by_service(check)
    test = check["coverage"]["0.9"]
    said = f"Inside the 90 % interval: {verdict(check)} ({test['inside']} of {test['rows']} rows"
    assert sentence(found).startswith(said)
    assert ("the newest 98 wait" in sentence(found)) == (rows == 198)
