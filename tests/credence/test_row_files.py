"""Files of rows, tables of predictions, and requests to train, as the command line has them."""

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer

from core.names import model_name_of
from core.predictions.window_check import check_window, verdict
from core.predictions.window_check import leaves as leaves_by_service
from credence.client.arrow import Column, Table, from_stream, to_stream
from credence.client.files.line_pieces import Pieces, header_of, rows_of
from credence.client.files.media_types import headers_for
from credence.commands.files.headers import column_names
from credence.commands.files.predictions import write_csv
from credence.commands.files.rows import BadRows, Rows, open_rows, read_lines
from credence.commands.options import column_list
from credence.commands.prediction_table import print_prediction
from credence.commands.train import build_request, zoned_time
from credence.feedback_verdict import leaves, sentence
from credence.types import Feature, Json, RollingFeedback
from models.evaluation.metrics import PerRowScores
from tests.core.predictions.test_feedback import HELD_OUT_METRICS, numbers
from tests.credence.invoking import NOBODY, command, words

FEATURES: list[Feature] = [
    {"name": "size", "type": "number"},
    {"name": "new", "type": "boolean"},
    {"name": "kind", "type": "category"},
]


def records(found: Rows) -> list[Json]:
    columns = found.all()
    values = zip(*(column.values for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]


def test_cells_take_the_type_of_their_feature() -> None:
    lines = ["id,kind,size,new,y", "1,7,1e3,True,3", "2,b,-2,0,4", "3,,,,5"]
    found = read_lines(lines, "csv", FEATURES)
    assert found.ignored == ("id", "y")
    assert records(found) == [
        {"size": 1000.0, "new": True, "kind": "7"},
        {"size": -2.0, "new": False, "kind": "b"},
        {"size": None, "new": None, "kind": None},
    ]


def test_codes_of_categories_are_text_in_json_too() -> None:
    source = io.BytesIO(b'{"size": 1, "new": true, "kind": 7, "more": 0}')
    with open_rows(source, "jsonl", FEATURES) as found:
        assert records(found) == [{"size": 1, "new": True, "kind": "7"}]
        assert found.ignored == ("more",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows"),
        ("size,new\n1,1\n", "'kind'"),
        ("size,new,kind\n1,1\n", "row 1"),
        ("size,new,kind\n1,1,a\nbig,1,a\n", "row 2, column 'size'"),
        ("size,new,kind\nnan,1,a\n", "row 1, column 'size'"),
        ("size,new,kind\n1,perhaps,a\n", "'perhaps'"),
    ],
)
def test_a_bad_row_is_named(text: str, message: str) -> None:
    with pytest.raises(BadRows, match=message):
        records(read_lines(text.splitlines(), "csv", FEATURES))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "row 1"),
        ("{", "row 1"),
        ('{"size": NaN, "new": true, "kind": "a"}', "row 1, column 'size'"),
        ('{"size": 1, "new": true, "kind": "a"}\n{"size": 1, "new": true}', "row 2.*'kind'"),
        ("", "an object per line"),
    ],
)
def test_a_bad_line_is_named(line: str, message: str) -> None:
    source = io.BytesIO(line.encode())
    with (
        pytest.raises(BadRows, match=message),
        open_rows(source, "jsonl", FEATURES) as found,
    ):
        found.all()


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("a.csv", "price;size\n1,5;2\n3,5;4\n", ["price", "size"]),
        ("a.csv", "Report of 2021\n\nprice,size\n1,2\n", ["price", "size"]),
        ("a.csv", "# made here\nprice,size\n1,2\n", ["price", "size"]),
        ("a.csv", "sep=|\nprice|size\n1|2\n", ["price", "size"]),
        ("a.csv", '"the, price" , size\n1,2\n', ["the, price", "size"]),
        ("a.csv", "price size,y\n1,2\n".encode("utf-16"), ["price size", "y"]),
        ("a.csv.gz", gzip.compress(b"price,size\n1,2\n", mtime=0), ["price", "size"]),
        ("a.jsonl", '{"price": 1, "at": {"x": 2}}\n{"size": 3}\n', ["price", "at", "at.x", "size"]),
        ("a.csv", "1,2\n3,4\n", None),  # no header
        ("a.csv", "prix\n1\n", None),  # one column, or another delimiter
        ("a.csv", "größe,y\n1,2\n".encode("latin-1"), None),  # the service finds the encoding
        ("a.txt", "price,size\n1,2\n", None),  # one column of text
    ],
)
def test_the_names_are_those_of_the_header_or_left_to_the_service(
    tmp_path: Path, name: str, content: str | bytes, names: list[str] | None
) -> None:
    assert column_names(written(tmp_path, name, content), {}) == names


CSV = b'# made by hand\n\nid,text\n1,"two\nlines"\n2,"a ""b"" c"\n3,plain\n'


@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("a.CSV", {"Content-Type": "text/csv"}),
        ("a.b.csv.gz", {"Content-Type": "text/csv", "Content-Encoding": "gzip"}),
        ("a.ndjson", {"Content-Type": "application/x-ndjson"}),
        ("a.zip", {"Content-Type": "application/octet-stream"}),
        ("a", {"Content-Type": "application/octet-stream"}),
    ],
)
def test_a_file_is_sent_as_what_its_suffix_says(name: str, headers: dict[str, str]) -> None:
    assert headers_for(Path(name)) == headers


def test_pieces_have_all_rows_once_and_in_order() -> None:
    lines = [b"%d\n" % i for i in range(10)]
    pieces = Pieces(lines, max_rows=8, max_bytes=1000)
    first = pieces.next()
    assert len(first) == 8
    pieces.put_back(first)  # too large for the service
    rest = list(iter(pieces.next, []))
    assert [len(piece) for piece in rest] == [4, 4, 2]
    assert [line for piece in rest for line in piece] == lines
    by_bytes = Pieces([b"x" * 10] * 5, max_rows=100, max_bytes=25)
    assert [len(piece) for piece in iter(by_bytes.next, [])] == [3, 2]


@pytest.mark.parametrize(
    ("reading", "header"),
    [
        ({"header": True, "comment": "#", "skip": 0}, b"id,text\n"),
        ({"header": True, "comment": None, "skip": 2}, b"id,text\n"),
        ({"header": False}, b""),
    ],
)
def test_the_header_is_the_first_full_row(reading: dict[str, object], header: bytes) -> None:
    assert header_of(list(rows_of(io.BytesIO(CSV))), reading) == header


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


def test_sets_of_classes_are_json_in_csv_and_in_tables(
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
    check = check_window(scores, labels, window, [held_out or HELD_OUT_METRICS])
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


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "table.csv"
    path.write_text("x0,x1,kind,y\n1,2,odd,3\n4,5,even,6\n")
    return str(path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--target", "knid"], "did you mean 'kind'?"),
        (["--task", "regresion"], "did you mean 'regression'?"),
        (["--method", "swga"], "did you mean 'swag'?"),
        (["--features", "x0,knid"], "did you mean 'kind'?"),
        (["--groups", "knd"], "did you mean 'kind'?"),
        (["--set", "training.epocs=3"], "did you mean 'epochs'?"),
        (["--set", "method.kind=swga"], "did you mean 'swag'?"),
        (["--taks", "regression"], "--task"),
        (["--name", "Preise 2026"], "'preise-2026'"),
    ],
)
def test_a_slip_is_named_before_an_upload(file: str, options: list[str], said: str) -> None:
    done = command("train", file, "--target", "y", *options, url=NOBODY)
    assert done.exit_code == 2  # and not 3: nobody was asked
    assert said in words(done.stderr)


def test_settings_join_the_short_options() -> None:
    options = {"task": "forecasting", "forecast.horizon": 12, "forecast.key": None}
    request = build_request(options, ["forecast.season=[24,168]", "forecast.horizon=14"])
    assert request == {"task": "forecasting", "forecast": {"horizon": 14, "season": [24, 168]}}
    bounds = build_request({"target": "y"}, ["target.lower=0", "target.integer=true"])
    assert bounds == {"target": {"name": "y", "lower": 0, "integer": True}}
    assert column_list(["a, b", '"c,d"']) == ["a", "b", "c,d"]
    assert column_list([]) is None


@pytest.mark.parametrize(
    ("data", "name"),
    [("Concrete (v2).csv", "concrete-v2"), ("a.b.csv", "a"), ("—.csv", "model")],
)
def test_a_model_is_named_after_its_data(data: str, name: str) -> None:
    assert model_name_of(data) == name
    assert len(model_name_of("x" * 99)) == 63


def test_a_time_zone_is_part_of_the_time() -> None:
    zoned = {"column": "time", "zone": "Europe/Berlin"}
    request = build_request({"forecast.time": zoned_time("time", "Europe/Berlin")}, None)
    assert request == {"forecast": {"time": zoned}}
    assert zoned_time("time", None) == "time"
    with pytest.raises(typer.BadParameter, match="needs --time"):
        zoned_time(None, "Europe/Berlin")
