import json
from pathlib import Path

import pytest

from credence.types import Version
from tests.credence.running import Service, credence


def test_no_service_exits_with_3_and_says_what_to_do() -> None:
    done = credence("jobs", "list", url="http://127.0.0.1:1")
    assert done.returncode == 3
    assert "no answer from http://127.0.0.1:1" in done.stderr
    assert "credence serve" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_that_is_none_is_wrong_use() -> None:
    done = credence("jobs", "list", "--url", "http://a:b")
    assert done.returncode == 2
    assert "--url" in done.stderr


def test_what_does_not_exist_exits_with_1(service: Service) -> None:
    done = credence("jobs", "show", "job_none", url=service.url)
    assert done.returncode == 1
    assert "job_none" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["jobs", "models", "datasets"])
def test_lists_are_tables_or_json(service: Service, version: Version, command: str) -> None:
    every = ("--limit", "1000")  # other tests have made some, too
    shown = credence(command, "list", *every, url=service.url)
    assert "small" in shown.stdout.lower()
    listed = json.loads(credence(command, "list", "--json", url=service.url).stdout)
    assert listed


def test_a_model_shows_its_variants(service: Service, version: Version) -> None:
    shown = credence("models", "show", "small", url=service.url).stdout
    assert "Beside it, on the same rows" in shown
    assert "- a linear model predicted the held-out rows " in shown
    assert "small version 1" in shown
    assert "50%" in shown
    assert str(version["num_weights"]) in shown


def test_a_card_tells_what_was_asked_for_and_goes_into_a_file(
    service: Service, version: Version, tmp_path: Path
) -> None:
    shown = credence("models", "card", "small", url=service.url).stdout
    for word in ("54 for training, 6 held out", "network.hidden", "Known limits", "mean-field"):
        assert word in shown
    assert "network.activation" not in shown
    path = tmp_path / "card.html"
    assert (
        credence("models", "card", "small", "1", "--html", str(path), url=service.url).returncode
        == 0
    )
    page = path.read_text()
    assert "src=" not in page.partition("<body>")[0]
    assert "plotly.js (basic" in page


def test_an_alias_is_set_and_removed(service: Service, version: Version) -> None:
    assert credence("models", "alias", "small", "best", "1", url=service.url).returncode == 0
    assert (
        "(best)" in credence("models", "show", "small", "--version", "best", url=service.url).stdout
    )
    assert credence("models", "alias", "small", "best", "--remove", url=service.url).returncode == 0
    assert credence("models", "show", "small", "--version", "best", url=service.url).returncode == 1
    assert credence("models", "alias", "small", "best", url=service.url).returncode == 2


def test_a_data_set_shows_its_columns_and_rows(service: Service, version: Version) -> None:
    shown = credence("datasets", "show", version["dataset"], url=service.url).stdout
    assert "even, odd" in shown
    rows = credence("datasets", "rows", version["dataset"], "--limit", "2", url=service.url).stdout
    assert "kind" in rows
    assert len(rows.splitlines()) == 3


def test_nothing_is_deleted_without_consent(service: Service, version: Version) -> None:
    asked = credence("datasets", "delete", version["dataset"], url=service.url, stdin="n\n")
    assert asked.returncode == 1
    assert credence("datasets", "show", version["dataset"], url=service.url).returncode == 0


def test_an_upload_can_be_deleted(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "gone.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    uploaded = credence("datasets", "upload", str(path), "--json", url=service.url)
    dataset = json.loads(uploaded.stdout)["id"]
    assert credence("datasets", "delete", dataset, "--yes", url=service.url).returncode == 0
    assert credence("datasets", "show", dataset, url=service.url).returncode == 1
