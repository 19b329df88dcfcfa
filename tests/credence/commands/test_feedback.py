"""`credence feedback` and `credence expected`, and the client's methods, against a real service."""

import json
from pathlib import Path

import pytest

from credence.client import Client
from credence.types import Version
from tests.credence.invoking import command, printed
from tests.credence.running import Service

ROWS = "kind,x0,x1,y\nodd,0.5,1.0,0.1\neven,,2.0,\nnew,1.5,-1.0,4.2\n"

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
