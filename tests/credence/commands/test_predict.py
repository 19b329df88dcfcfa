"""`credence predict` and `feedback`: files in, rows and verdicts out; forecasts of many series."""

import csv
import io
import json
import math
import os
import pty
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from credence import Client
from credence.types import Version
from tests.credence.invoking import command, printed, words
from tests.credence.running import CREDENCE, Service, environment

ROWS = "kind,x0,x1,y\nodd,0.5,1.0,9\neven,,2.0,9\nnew,1.5,-1.0,9\n"

pytestmark = pytest.mark.usefixtures("version")


def predicted(service: Service, *options: str, rows: str = ROWS) -> list[dict[str, str]]:
    """The lines of CSV that a pipe gets."""
    shown = printed("predict", "small", *options, url=service.url, stdin=rows)
    return list(csv.DictReader(io.StringIO(shown)))


def test_a_pipe_gets_csv_with_a_line_per_row(service: Service) -> None:
    done = command("predict", "small", "--interval", "0.5", url=service.url, stdin=ROWS)
    assert "not features, ignored: y" in done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 3
    for row in rows:
        parts = float(row["aleatoric_variance"]) + float(row["epistemic_variance"])
        assert parts == pytest.approx(float(row["total_variance"]))
        assert float(row["lower_0.5"]) < float(row["mean"]) < float(row["upper_0.5"])


def test_columns_of_the_rows_are_kept_to_join_on(service: Service) -> None:
    rows = "number,kind,x0,x1,y\n007,odd,0.5,1.0,9\n=1+1,even,,2.0,9\n"
    found = predicted(service, "--id", "number", "--keep", "y", rows=rows)
    assert list(found[0])[:3] == ["number", "y", "mean"]
    # A spreadsheet would run the second as a formula.
    assert [(row["number"], row["y"]) for row in found] == [("007", "9"), ("'=1+1", "9")]
    whole = ["predict", "small", "--with-inputs", "--format", "table"]
    shown = printed(*whole, url=service.url, stdin=rows)
    assert re.search(r"row\s+number\s+kind\s+x0\s+x1\s+y\s+mean", shown.replace("\n", " "))
    wrong = command("predict", "small", "--id", "nubmer", url=service.url, stdin=rows)
    assert wrong.exit_code == 1
    assert "did you mean 'number'?" in wrong.stderr


@pytest.mark.parametrize(
    ("options", "rows", "code", "message"),
    [
        ([], "kind,x0,x1\na,b,1\n", 2, "column 'x0' is no number: line 2 holds 'b'"),
        ([], "kind,x0,x1\n", 2, "the file has a header and no rows"),
        (["--from", "jsonl"], "{}\nno", 2, "line 2 is not JSON"),
        (["--from", "jsonl"], '{"x0": 1}\n', 2, "lacks the columns x1, kind"),
        (["--from", "parquet"], "PAR0", 2, "the file is not Parquet"),
        (["--future", __file__], ROWS, 2, "has no covariates"),
        (["--json", "--format", "csv"], ROWS, 2, "either --json or --format"),
        (["--interval", "90"], ROWS, 1, "must be less than 1"),
        (["--prune", "0.3"], ROWS, 1, "0.5"),  # the variant that exists
        (["--density", "1"], ROWS, 1, "/density/points"),
        (["--costs", "missing.json"], ROWS, 2, "neither a file"),
        (["--costs", '{"over": 1}'], ROWS, 1, "both over"),
    ],
)
def test_wrong_use_is_told_apart_from_a_refusal(
    service: Service, options: list[str], rows: str, code: int, message: str
) -> None:
    done = command("predict", "small", *options, url=service.url, stdin=rows)
    assert done.exit_code == code
    assert words(done.stderr).count(message) == 1


def test_a_terminal_gets_a_table(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    asked = ["--exceeds", "0.5", "--quantile", "0.1", "--density", "64"]
    shown = on_terminal(service, "predict", "small", str(path), *asked)
    assert "small version 1, 0% pruned" in shown
    assert {"aleatoric", "90%", "interval", "above", "quantile", "density"} <= set(shown.split())
    assert "█" in shown
    assert on_terminal(service, "predict", "small", str(path)).count("●") == 3


def on_terminal(service: Service, *arguments: str) -> str:
    """What a command prints on a terminal of 160 characters."""
    terminal, stdout = pty.openpty()
    env = environment(CREDENCE_URL=service.url, COLUMNS="160", LINES="50", TERM="dumb")
    process = [*CREDENCE, *arguments]
    with subprocess.Popen(process, env=env, stdout=stdout, stdin=subprocess.DEVNULL) as running:
        os.close(stdout)
        shown = b"".join(_read(terminal))
    os.close(terminal)
    assert running.returncode == 0
    return shown.decode()


def _read(terminal: int) -> Iterator[bytes]:
    """All that is printed: a terminal gives 4 kB at a time, and an error at the end."""
    with suppress(OSError):
        while part := os.read(terminal, 10_000):
            yield part


LABELLED = "kind,x0,x1,y\nodd,0.5,1.0,0.1\neven,,2.0,\nnew,1.5,-1.0,4.2\n"


def test_a_file_of_what_came_true(service: Service, client: Client, version: Version) -> None:
    before = client.rolling_feedback("small")["metrics"]["rows"]
    options = ["feedback", "small", "-", "--truth", "y"]
    shown = printed(*options, url=service.url, stdin=LABELLED)
    assert "coverage 0.9" in shown
    assert "adapted_level" not in shown
    rolling = client.rolling_feedback("small", version["version"])
    assert rolling["metrics"]["rows"] == before + 2  # the row without a truth does not count
    told = json.loads(
        printed(*options, "--prune", "0.5", "--json", url=service.url, stdin=LABELLED)
    )
    assert told["rows"] == 2
    assert told["rolling"] == client.rolling_feedback("small", 1)


@pytest.mark.parametrize("off", [0.0, 1000.0])
def test_the_verdict_comes_first(service: Service, client: Client, off: float) -> None:
    """A whole window of rows whose true values are the predicted means, or far from them."""
    row = {"kind": "odd", "x0": 0.5, "x1": 1.0}
    (mean,) = client.model("small", 1).predict([row]).mean
    lines = "kind,x0,x1,y\n" + f"odd,0.5,1.0,{mean + off}\n" * 1000
    options = ["small", "-", "--truth", "y"]
    for check in ([], ["--check"]):
        done = command("feedback", *options, *check, url=service.url, stdin=lines)
        assert done.exit_code == (1 if off and check else 0), done.stderr
        said = "lower than chance allows" if off else "as expected"
        assert done.stdout.startswith(f"Inside the 90 % interval: {said} (")


def test_a_file_without_labels_and_a_data_set_with_them(
    service: Service, client: Client, version: Version, tmp_path: Path
) -> None:
    rows = client.dataset_rows(version["dataset"], 40)
    lines = [f"{row['x0']},{row['x1']},{row['kind']}" for row in rows]
    path = tmp_path / "new.csv"
    path.write_text("\n".join(["x0,x1,kind", *lines]).replace("None", "") + "\n")
    shown = printed("expected", "small", str(path), "--level", "0.8", url=service.url)
    assert "small version 1 on 40 rows: 80 % intervals" in shown
    assert "actual" not in shown
    told = json.loads(printed("expected", "small", str(path), "--json", url=service.url))
    assert told["level"] == 0.9
    assert "actual" in printed("expected", "small", version["dataset"], url=service.url)
    missing = command("expected", "small", "nowhere.csv", url=service.url)
    assert missing.exit_code == 2
    assert "nowhere.csv" in missing.stderr


def test_an_alert_is_an_exit_code_on_request(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "far.csv"
    path.write_text("x0,x1,kind\n" + "".join(f"{1e6 + i},2.0,odd\n" for i in range(30)))
    plain = command("expected", "small", str(path), url=service.url)
    checked = command("expected", "small", str(path), "--check", url=service.url)
    assert (plain.exit_code, checked.exit_code) == (0, 1)
    assert "100 % of the rows are unlike those of training" in plain.stderr


LENGTHS = {"north": 60, "south": 57}
SHOWN = ["north"] * 3 + ["south"] * 3


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A row per day of two shops, of which one ends earlier."""
    path = tmp_path_factory.mktemp("shops") / "shops.csv"
    rows = [
        f"{date(2025, 1, 1) + timedelta(i)},{shop},{level + 3 * math.sin(i):.3f}"
        for (shop, length), level in zip(LENGTHS.items(), (20, 90), strict=True)
        for i in range(length)
    ]
    path.write_text("\n".join(["day,shop,sold", *rows]))
    return path


@pytest.fixture(scope="module")
def model(service: Service, shops: Path) -> str:
    """Trained by the short options of forecasts."""
    options = ["--task", "forecasting", "--time", "day", "--key", "shop", "--horizon", "3"]
    tiny = ["--hidden", "4", "--epochs", "2", "--set", "pruning=[]", "--set", "network.kind=gru"]
    tiny += ["--set", "forecast.classics=false", "--yes", "--json"]
    asked = ["train", str(shops), "--target", "sold", *options, *tiny]
    version = json.loads(printed(*asked, url=service.url))
    forecast = version["forecast"]
    assert version["task"] == "forecasting"
    assert (forecast["time"], forecast["key"], forecast["horizon"]) == ("day", "shop", 3)
    return str(version["model"])


def test_a_file_of_many_series_is_forecast(service: Service, model: str, shops: Path) -> None:
    shown = printed("predict", model, str(shops), url=service.url)
    rows = list(csv.DictReader(io.StringIO(shown)))
    assert [row["series"] for row in rows] == SHOWN
    assert [row["step"] for row in rows] == ["1", "2", "3"] * 2
    ends = [f"{date(2025, 1, 1) + timedelta(length)}" for length in LENGTHS.values()]
    assert [rows[0]["time"][:10], rows[3]["time"][:10]] == ends


def test_a_prediction_says_which_series_and_when(client: Client, model: str, shops: Path) -> None:
    rows = pd.read_csv(shops)
    asked: Any = {"exceeds": [50.0], "anomalies": 2, "seed": 1}
    found = client.model(model).predict(rows, **asked)
    body = {name: rows[name].tolist() for name in rows}
    told: Any = client.submit_predict({"model": model, "inputs": body, **asked})
    assert found.series.tolist() == told["series"] == SHOWN
    assert found.steps.tolist() == told["steps"] == [1, 2, 3] * 2
    assert found.to_frame()["series"].tolist() == SHOWN
    (exceedance,) = told["exceeds"]
    for name in ("any_above", "any_below"):
        assert getattr(found, name)(50).tolist() == pytest.approx(exceedance[name])
    newest, anomalies = found.anomalies, told["anomalies"]
    assert newest.series.tolist() == list(LENGTHS)
    for name in ("value", "p_value", "surprise", "flagged"):
        assert getattr(newest, name).ravel().tolist() == pytest.approx(anomalies[name])
        assert getattr(newest, name).shape == (2, 2)
    assert newest.value[0].tolist() == rows[rows["shop"] == "north"]["sold"].tolist()[-2:]
    times = newest.times.astype("datetime64[D]").astype(str).ravel().tolist()
    assert times == [time[:10] for time in anomalies["times"]]
    assert newest.joint_p_value.tolist() == pytest.approx(anomalies["joint"]["p_value"])
    assert newest.joint_flagged.tolist() == anomalies["joint"]["flagged"]
    plain = client.model(model).predict(rows)
    with pytest.raises(ValueError, match="anomalies=7"):
        _ = plain.anomalies
    with pytest.raises(ValueError, match=r"exceeds=\[50"):
        plain.any_above(50)
