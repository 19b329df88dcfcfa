"""Predictions as tables of the terminal, as CSV, and by the names that Python reads."""

import csv
import io
from typing import Any

import pyarrow as pa
import pytest

from credence.client.arrow import Column, Table, from_stream, to_stream
from credence.commands.files.predictions import write_csv
from credence.commands.prediction_table import print_prediction

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
