"""`credence predict` with files of every format, with texts and with forecasts."""

import io
import json
import math
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

from credence import Client
from credence.cli import app
from credence.commands.files.rows import BadRows, format_of, open_rows
from credence.types import Feature, Version
from tests.credence.running import CREDENCE, Service, environment

ROWS = [
    {"kind": "odd", "x0": 0.5, "x1": 1.0, "y": 9},
    {"kind": "even", "x0": None, "x1": 2.0, "y": 9},
]
CSV = "kind,x0,x1,y\nodd,0.5,1.0,9\neven,,2.0,9\n"
FEATURES: list[Feature] = [{"name": "x0", "type": "number"}, {"name": "kind", "type": "category"}]
TINY: dict[str, Any] = {"training": {"epochs": 2}, "pruning": []}


def invoke(service: Service, *arguments: str, stdin: str | bytes = "") -> Result:
    done = CliRunner().invoke(app, arguments, input=stdin, env={"CREDENCE_URL": service.url})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.fixture(scope="module")
def expected(service: Service, version: Version) -> list[float]:
    """What CSV from a pipe gets."""
    done = invoke(service, "predict", "small", stdin=CSV)
    lines = done.stdout.splitlines()
    return [float(line.partition(",")[0]) for line in lines[1:]]


def test_rows_of_any_format_get_the_same_answer(
    service: Service, expected: list[float], tmp_path: Path
) -> None:
    table = pa.Table.from_pylist(ROWS)
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    parquet.write_table(table, tmp_path / "rows.parquet")
    with pa.ipc.new_stream(tmp_path / "rows.arrows", table.schema) as writer:
        writer.write_table(table)
    for name in ("rows.jsonl", "rows.parquet", "rows.arrows"):
        done = invoke(service, "predict", "small", str(tmp_path / name), "--format", "jsonl")
        assert "not features, ignored: y" in done.stderr, name
        means = [json.loads(line)["mean"] for line in done.stdout.splitlines()]
        assert means == pytest.approx(expected), name


@pytest.mark.parametrize("format_", ["parquet", "arrow"])
def test_results_are_files_that_other_programs_read(
    service: Service, expected: list[float], format_: str
) -> None:
    done = invoke(service, "predict", "small", "--format", format_, stdin=CSV)
    read = {
        "parquet": parquet.read_table,
        "arrow": lambda file: pa.ipc.open_stream(file).read_all(),
    }
    table = read[format_](io.BytesIO(done.stdout_bytes))
    assert table["mean"].to_pylist() == pytest.approx(expected)
    assert table.schema.field("out_of_distribution").type == pa.bool_()


def test_progress_on_a_terminal_leaves_the_result_to_the_pipe(
    service: Service, expected: list[float]
) -> None:
    terminal, stderr = pty.openpty()
    done = subprocess.run(
        [*CREDENCE, "predict", "small"],
        env=environment(CREDENCE_URL=service.url, TERM="xterm"),
        input=CSV,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        check=True,
    )
    shown = os.read(terminal, 10_000).decode()
    os.close(stderr)
    os.close(terminal)
    assert "2 rows" in shown
    lines = done.stdout.splitlines()
    assert [float(line.partition(",")[0]) for line in lines[1:]] == pytest.approx(expected)


def test_texts_are_predicted_a_line_each(service: Service, client: Client, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("the cat sat on the mat\nthe dog ran in the park\n" * 30)
    client.train(lines, target="text", network={"kind": "lstm", "hidden": [4]}, **TINY)
    texts = ["the cat", "a dog, a park"]
    answer = client.predict_texts("lines", texts, top=3)
    done = invoke(service, "predict", "lines", stdin="\n".join(texts))
    for line, perplexity in zip(done.stdout.splitlines()[1:], answer["perplexity"], strict=True):
        assert float(line.split(",")[1]) == pytest.approx(perplexity)
    assert [len(tokens) for tokens in answer["next_tokens"]] == [3, 3]
    table = invoke(service, "predict", "lines", "--format", "table", stdin="\n".join(texts))
    assert "next token" in table.stdout


def test_a_forecast_is_told_what_will_be(service: Service, client: Client, tmp_path: Path) -> None:
    history, future = tmp_path / "trips.csv", tmp_path / "future.csv"
    rows = [
        f"{1990 + i // 12}-{i % 12 + 1:02d}-01,{i % 2},{100 + i + 10 * math.sin(i / 2):.2f}"
        for i in range(60)
    ]
    history.write_text("\n".join(["month,promo,trips", *rows]))
    future.write_text("promo\n0\n1\n0\n")
    model = client.train(
        history, target="trips", task="forecasting", features=["promo"],
        network={"kind": "gru", "hidden": [4]}, **TINY,
    )  # fmt: skip
    asked = ["predict", "trips", str(history), "--horizon", "3"]
    done = invoke(service, *asked, "--future", str(future), "--format", "jsonl")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["time"][:7] for row in told] == ["1995-01", "1995-02", "1995-03"]
    columns = {"month": [], "promo": [], "trips": []}  # type: dict[str, list[Any]]
    for row in rows:
        for column, cell in zip(columns.values(), row.split(","), strict=True):
            column.append(cell if "-" in cell else float(cell))
    prediction = model.predict(columns, future={"promo": [0.0, 1.0, 0.0]}, horizon=3)
    assert prediction.mean.tolist() == pytest.approx([row["mean"] for row in told])
    assert str(prediction.times[0]).startswith("1995-01")
    assert "needs promo of the" in _words(invoke(service, *asked).stderr)


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["--from", "jsonl"], "{}\nno", "line 2 is not JSON"),
        (["--from", "jsonl"], '{"x0": 1}\n', "lacks the columns x1, kind"),
        (["--from", "parquet"], "PAR0", "the file is not Parquet"),
        (["--from", "arrow"], "PAR0", "this is not an Arrow file"),
        (["--future", __file__], CSV, "has no covariates: leave out --future"),
        (["--json", "--format", "csv"], CSV, "either --json or --format"),
        ([], "", "give a header and at least one row"),
    ],
)
def test_wrong_use_says_what_would_be_right(
    service: Service, version: Version, arguments: list[str], stdin: str, message: str
) -> None:
    done = invoke(service, "predict", "small", *arguments, stdin=stdin)
    assert done.exit_code == 2
    assert message in _words(done.stderr)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "row 1: list is no object"),
        ("{", "row 1: not JSON"),
        ('{"x0": NaN, "kind": "a"}', "row 1, column 'x0': nan is not a finite number"),
        ('{"x0": 1, "kind": "a"}\n{"x0": 1}', "row 2: no column 'kind'"),
        ("", "an object per line"),
    ],
)
def test_a_bad_line_is_named(line: str, message: str) -> None:
    with (
        pytest.raises(BadRows, match=message),
        open_rows(io.BytesIO(line.encode()), "jsonl", FEATURES) as rows,
    ):
        rows.all()


def test_codes_of_categories_are_text_in_every_format() -> None:
    source = io.BytesIO(b'{"x0": 1, "kind": 7, "more": 0}')
    with open_rows(source, "jsonl", FEATURES) as rows:
        assert {n: c.values for n, c in rows.all().items()} == {"x0": [1], "kind": ["7"]}
        assert rows.ignored == ("more",)


def test_a_suffix_that_says_nothing_is_named() -> None:
    with pytest.raises(BadRows, match=r"'\.xlsx' is none of \.csv, .* --from sets the format"):
        format_of(Path("rows.xlsx"))


def _words(text: str) -> str:
    """Without the frame that is drawn around errors, and its line ends."""
    return " ".join(text.replace("│", " ").split())
