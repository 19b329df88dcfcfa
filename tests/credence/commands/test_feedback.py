"""`credence feedback` and the client's methods, against a real service."""

import json

import pytest

from credence.client import Client
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
    assert "check alarm_p_value" in done.stdout
    assert "check labels" not in done.stdout
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
        ("y", "kind,x0,x1,y\nodd,1,2,\n", "no row has a value in the column 'y'"),
        ("y", "kind,x0,x1,y\nodd,1,2,much\n", "'much' is not a number"),
    ],
)
def test_a_file_that_tells_nothing_is_wrong_use(
    service: Service, truth: str, rows: str, message: str
) -> None:
    done = credence("feedback", "small", "-", "--truth", truth, url=service.url, stdin=rows)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_stored_prediction_is_labelled_by_its_id(client: Client) -> None:
    rows = [{"x0": 1.0, "x1": 2.0, "kind": "odd"}]
    prediction = client.submit_predict({"model": "small", "inputs": rows, "store": True})
    told = client.submit_feedback(
        {"prediction": prediction["id"], "truth": [prediction["mean"][0]]}
    )
    assert told["prediction"] == prediction["id"]
    assert told["metrics"]["rmse"] == pytest.approx(0, abs=1e-5)
    assert told["metrics"]["coverage"]["0.5"] == 1
