"""`credence expected`, against a real service."""

import json
from pathlib import Path

import pytest

from credence.client import Client
from credence.types import Version
from tests.credence.running import Service, credence

pytestmark = pytest.mark.usefixtures("version")


@pytest.fixture
def file(tmp_path: Path, client: Client, version: Version) -> Path:
    """Rows of the training data, without their target."""
    rows = client.dataset_rows(version["dataset"], 40)
    lines = [f"{row['x0']},{row['x1']},{row['kind']}" for row in rows]
    path = tmp_path / "new.csv"
    path.write_text("\n".join(["x0,x1,kind", *lines]).replace("None", "") + "\n")
    return path


def test_a_file_without_labels(service: Service, file: Path) -> None:
    done = credence("expected", "small", str(file), "--level", "0.8", url=service.url)
    assert done.returncode == 0, done.stderr
    assert "small version 1 on 40 rows: 80 % intervals" in done.stdout
    assert "rmse" in done.stdout
    assert "only labels can show it" in done.stderr
    shown = credence("expected", "small", str(file), "--json", url=service.url)
    assert json.loads(shown.stdout)["level"] == 0.9


def test_the_id_of_a_data_set_shows_its_labels(service: Service, version: Version) -> None:
    done = credence("expected", "small", version["dataset"], url=service.url)
    assert done.returncode == 0, done.stderr
    assert "actual" in done.stdout


def test_an_alert_is_an_exit_code_on_request(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "far.csv"
    path.write_text("x0,x1,kind\n" + "".join(f"{1e6 + i},2.0,odd\n" for i in range(30)))
    plain, checked = (
        credence("expected", "small", str(path), *more, url=service.url)
        for more in ((), ("--check",))
    )
    assert (plain.returncode, checked.returncode) == (0, 1)
    assert "100 % of the rows are unlike those of training" in plain.stderr


def test_a_file_that_does_not_exist_is_wrong_use(service: Service) -> None:
    done = credence("expected", "small", "nowhere.csv", url=service.url)
    assert done.returncode == 2
    assert "no file nowhere.csv" in done.stderr
