"""`credence expected`, against a real service."""

import json
from pathlib import Path

import pytest

from credence.client import Client
from credence.types import Version
from tests.credence.invoking import command, printed
from tests.credence.running import Service

pytestmark = pytest.mark.usefixtures("version")


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
