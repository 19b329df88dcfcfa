"""Predictions as tables of the terminal, as CSV, and by the names that Python reads."""

import csv
import io
from typing import Any

import pyarrow as pa
import pytest

from credence.client.arrow import Column, Table, from_stream, to_stream
from credence.client.prediction import Prediction
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


def prediction_of(numbers: dict[str, float | None]) -> Prediction:
    return Prediction(table_of(numbers), None, lambda table: table)


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


def test_totals_are_shown_and_read_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    totals = {
        "total_mean": 20.0, "total_median": 19.0, "total_mc_error": 0.1,
        "total_lower_0.9": 11.0, "total_upper_0.9": 33.0,
        "total_quantile_0.25": 17.0, "total_exceeds_25.0": 0.125,
    }  # fmt: skip
    assert "11 to 33" in row_and_shown(table_of(totals), capsys)[1]
    found = prediction_of(totals).totals
    assert (found.mean[0], found.median[0], found.mc_error[0]) == (20.0, 19.0, 0.1)
    assert found.interval(0.9).upper[0] == 33.0
    assert (found.quantile(0.25)[0], found.exceeds(25)[0]) == (17.0, 0.125)
    with pytest.raises(ValueError, match="totals="):
        found.exceeds(30)


def test_the_strongest_contributions_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    parts = {"": (0.1, -3.0, 0.0, 1.5, 2.0), "aleatoric_": (0.2,) * 5, "epistemic_": (0.0,) * 5}
    numbers = {
        f"{error}{part}contribution_{name}": value
        for error in ("", "standard_error_")
        for part, values in parts.items()
        for name, value in zip(("a", "b", "lower_limit", "d", "e"), values, strict=True)
    }
    cells = row_and_shown(table_of(numbers), capsys)[1].split()
    assert [cells[cells.index(name) + 1] for name in ("b", "e", "d")] == ["-3", "+2", "+1.5"]
    found = prediction_of(numbers).contributions
    assert found.features == ("a", "b", "lower_limit", "d", "e")
    assert found.mean.tolist() == [[0.1, -3.0, 0.0, 1.5, 2.0]]


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
