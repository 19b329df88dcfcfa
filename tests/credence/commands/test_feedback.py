"""`credence feedback` and the client's methods, against a real service."""

import json
from pathlib import Path

import pandas as pd
import pytest

from credence.client import Client
from credence.rendering import flatten
from credence.types import Version
from tests.credence.running import Service, credence

ROWS = "kind,x0,x1,y\nodd,0.5,1.0,0.1\neven,,2.0,\nnew,1.5,-1.0,4.2\n"

pytestmark = pytest.mark.usefixtures("version")


def test_a_file_of_what_came_true(service: Service, client: Client, version: Version) -> None:
    before = client.rolling_feedback("small")["metrics"]["rows"]
    options = ["small", "-", "--truth", "y"]
    done = credence("feedback", *options, url=service.url, stdin=ROWS)
    assert done.returncode == 0, done.stderr
    assert "small version 1" in done.stdout
    assert "coverage 0.9" in done.stdout
    for left_out in ("check ", "standard_errors", "adapted_level"):
        assert left_out not in done.stdout
    assert done.stdout.splitlines()[2].split() == ["metric", "labelled", "±", "held", "out", "±"]
    rolling = client.rolling_feedback("small", version["version"])
    assert rolling["metrics"]["rows"] == before + 2  # the row without a truth does not count
    done = credence("feedback", *options, "--prune", "0.5", "--json", url=service.url, stdin=ROWS)
    assert json.loads(done.stdout)["rows"] == 2
    assert json.loads(done.stdout)["rolling"] == client.rolling_feedback("small", 1)


@pytest.mark.parametrize(
    ("truth", "rows", "message"),
    [
        ("z", ROWS, "no column 'z'"),
        ("x0", ROWS, "x0 is a feature of small"),
        ("y", "kind,x0,x1,y\nodd,1,2,\n", "has only null"),
        ("y", "kind,x0,x1,y\nodd,1,2,much\n", "line 2 holds 'much'"),
        ("y", "kind,x0,x1,y\nodd,1,2,3\nodd,1,2,1e30\n", "column 'y', line 3: is more than"),
        ("y", "kind,x0,y\nodd,1,2\n", "lacks the columns x1"),
    ],
)
def test_a_file_that_tells_nothing_is_wrong_use(
    service: Service, truth: str, rows: str, message: str
) -> None:
    done = credence("feedback", "small", "-", "--truth", truth, url=service.url, stdin=rows)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())


GERMAN = """\
Messwerte vom 1. März

kind;x0;x1;Ort;gemessen
odd;0,5;1,0;Köln;0,1
even;-;2,0;Köln;-
new;1,5;-1,0;Trier;4,2
"""


def test_a_file_is_read_as_that_of_a_prediction(
    service: Service, client: Client, tmp_path: Path
) -> None:
    """The scores of a German file are those of the same rows in JSON."""
    (tmp_path / "werte.csv").write_text(GERMAN, "cp1252")
    workbook = tmp_path / "werte.xlsx"
    table = pd.DataFrame({"kind": ["odd", "new"], "x0": [0.5, 1.5], "x1": [1.0, -1.0]})
    table.assign(gemessen=[0.1, 4.2]).to_excel(workbook, index=False)
    rows = {"inputs": [[0.5, 1.0, "odd"], [1.5, -1.0, "new"]], "truth": [0.1, 4.2]}
    expected = client.submit_feedback({"model": "small", "version": 1, **rows})["metrics"]
    for name in ("werte.csv", "werte.xlsx"):
        options = ["small", str(tmp_path / name), "--truth", "gemessen", "--json"]
        done = credence("feedback", *options, url=service.url)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert flatten(found["metrics"]) == pytest.approx(flatten(expected), rel=1e-5)
        assert ("not features, ignored: Ort" in done.stderr) == (name == "werte.csv")
    of_model = client.model("small").feedback(tmp_path / "werte.csv", "gemessen", decimal=",")
    assert of_model["metrics"]["rmse"] == pytest.approx(expected["rmse"], rel=1e-5)
    with pytest.raises(TypeError, match="name of their column"):
        client.model("small").feedback(tmp_path / "werte.csv", [0.1, None, 4.2])
    with pytest.raises(TypeError, match="decimal: only for a file"):
        client.model("small").feedback(table, [0.1, 4.2], decimal=",")


def test_a_long_file_goes_in_pieces(service: Service, client: Client, tmp_path: Path) -> None:
    """Of at most 10,000 lines; the second has no true values, and no header."""
    line = "odd;0,5;1,0;{}\n"
    known, unknown = line.format("0,1"), line.format("")
    rows = [known] * 9_998 + [unknown] * 10_000 + [known] * 5  # after two lines of the header
    (tmp_path / "long.csv").write_text("Titel\nkind;x0;x1;y\n" + "".join(rows))
    told = client.model("small").feedback(tmp_path / "long.csv", "y")
    assert told["rows"] == 5
    assert told["rolling"]["metrics"]["rows"] == 1000
    assert told["rolling"]["metrics"]["rmse"] == pytest.approx(told["metrics"]["rmse"], rel=1e-6)


@pytest.mark.parametrize("off", [0.0, 1000.0])
def test_the_verdict_comes_first_and_check_ends_with_it(
    service: Service, client: Client, off: float
) -> None:
    """A whole window of rows whose true values are the predicted means, or far from them."""
    row = {"kind": "odd", "x0": 0.5, "x1": 1.0}
    (mean,) = client.model("small", 1).predict([row]).mean
    lines = "kind,x0,x1,y\n" + f"odd,0.5,1.0,{mean + off}\n" * 1000
    options = ["small", "-", "--truth", "y"]
    for check in ([], ["--check"]):
        done = credence("feedback", *options, *check, url=service.url, stdin=lines)
        assert done.returncode == (1 if off and check else 0), done.stderr
        test = client.rolling_feedback("small", 1)["metrics"]["check"]["coverage"]["0.9"]
        said = "lower than chance allows" if off else "as expected"
        newest = client.rolling_feedback("small", 1)["metrics"]["check"]["labels"] % 100
        waiting = f"; the newest {newest} wait for the next test, after {100 - newest} more"
        assert done.stdout.splitlines()[0] == (
            f"Inside the 90 % interval: {said} ({0 if off else test['rows']} of {test['rows']} "
            f"rows; of the held-out rows {test['held_out_coverage']:.1%})"
            f"{waiting if newest else ''}"
        )


def test_a_stored_prediction_is_labelled_by_its_id(client: Client) -> None:
    rows = [{"x0": 1.0, "x1": 2.0, "kind": "odd"}]
    prediction = client.submit_predict({"model": "small", "inputs": rows, "store": True})
    told = client.submit_feedback(
        {"prediction": prediction["id"], "truth": [prediction["mean"][0]]}
    )
    assert told["prediction"] == prediction["id"]
    assert told["metrics"]["rmse"] == pytest.approx(0, abs=1e-5)
    assert told["metrics"]["coverage"]["0.5"] == 1
