"""`credence feedback` and the client's methods, against a real service."""

import json
from pathlib import Path

import pandas as pd
import pytest

from credence.client import Client
from credence.rendering import flatten
from credence.types import Version
from tests.credence.invoking import command, printed
from tests.credence.running import Service

ROWS = "kind,x0,x1,y\nodd,0.5,1.0,0.1\neven,,2.0,\nnew,1.5,-1.0,4.2\n"
GERMAN = """\
Messwerte vom 1. März

kind;x0;x1;Ort;gemessen
odd;0,5;1,0;Köln;0,1
even;-;2,0;Köln;-
new;1,5;-1,0;Trier;4,2
"""

pytestmark = pytest.mark.usefixtures("version")


def test_a_file_of_what_came_true(service: Service, client: Client, version: Version) -> None:
    before = client.rolling_feedback("small")["metrics"]["rows"]
    options = ["feedback", "small", "-", "--truth", "y"]
    shown = printed(*options, url=service.url, stdin=ROWS)
    assert "coverage 0.9" in shown
    assert "adapted_level" not in shown
    rolling = client.rolling_feedback("small", version["version"])
    assert rolling["metrics"]["rows"] == before + 2  # the row without a truth does not count
    told = json.loads(printed(*options, "--prune", "0.5", "--json", url=service.url, stdin=ROWS))
    assert told["rows"] == 2
    assert told["rolling"] == client.rolling_feedback("small", 1)


def test_a_file_is_read_as_that_of_a_prediction(
    service: Service, client: Client, tmp_path: Path
) -> None:
    """The scores of a German file are those of the same rows in JSON."""
    (tmp_path / "werte.csv").write_text(GERMAN, "cp1252")
    table = pd.DataFrame({"kind": ["odd", "new"], "x0": [0.5, 1.5], "x1": [1.0, -1.0]})
    table.assign(gemessen=[0.1, 4.2]).to_excel(tmp_path / "werte.xlsx", index=False)
    rows = {"inputs": [[0.5, 1.0, "odd"], [1.5, -1.0, "new"]], "truth": [0.1, 4.2]}
    expected = client.submit_feedback({"model": "small", "version": 1, **rows})["metrics"]
    for name in ("werte.csv", "werte.xlsx"):
        options = ["small", str(tmp_path / name), "--truth", "gemessen", "--json"]
        found = json.loads(printed("feedback", *options, url=service.url))
        assert flatten(found["metrics"]) == pytest.approx(flatten(expected), rel=1e-5)
    of_model = client.model("small").feedback(tmp_path / "werte.csv", "gemessen", decimal=",")
    assert of_model["metrics"]["rmse"] == pytest.approx(expected["rmse"], rel=1e-5)
    with pytest.raises(TypeError, match="decimal"):
        client.model("small").feedback(table, [0.1, 4.2], decimal=",")


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
        done = command("feedback", *options, *check, url=service.url, stdin=lines)
        assert done.exit_code == (1 if off and check else 0), done.stderr
        said = "lower than chance allows" if off else "as expected"
        assert done.stdout.startswith(f"Inside the 90 % interval: {said} (")
