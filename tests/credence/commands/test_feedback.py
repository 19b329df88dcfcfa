"""`credence feedback` and the client's methods, against a real service."""

import json

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
