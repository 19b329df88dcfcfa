"""`credence keys`, and a service that asks for what it printed."""

import json
from pathlib import Path

import pytest

from credence.client import Client
from credence.exceptions import CredenceAPIError
from tests.credence.invoking import command, printed
from tests.credence.running import serving


def keys(data_dir: Path, *arguments: str) -> list[str]:
    """The lines that a command prints; it must succeed."""
    return printed("keys", *arguments, "--data-dir", str(data_dir)).splitlines()


def test_a_key_is_printed_once_listed_and_revoked(tmp_path: Path) -> None:
    (text,) = keys(tmp_path, "create", "--name", "laptop", "--scope", "predict")
    assert text.startswith("cred_")
    listed = "\n".join(keys(tmp_path, "list", "--json"))
    assert text not in listed
    (key,) = json.loads(listed)
    assert (key["name"], key["scope"], key["revoked_at"]) == ("laptop", "predict", None)
    keys(tmp_path, "revoke", key["id"], "--yes")
    again = command("keys", "revoke", key["id"], "--yes", "--data-dir", str(tmp_path))
    assert again.exit_code == 1
    wrong = command("keys", "create", "--name", "x", "--scope", "all", "--data-dir", str(tmp_path))
    assert wrong.exit_code == 2
    assert all(scope in wrong.stderr for scope in ("predict", "train", "admin"))


def test_a_service_for_other_machines_asks_for_a_key(tmp_path: Path) -> None:
    (text,) = keys(tmp_path / "data", "create", "--name", "first", "--scope", "train")
    with serving(tmp_path, "api", "--host", "0.0.0.0") as service:
        url = service.url.replace("0.0.0.0", "127.0.0.1")
        without = command("models", "list", url=url)
        assert without.exit_code == 1
        assert "CREDENCE_KEY" in without.stderr
        printed("models", "list", url=url, CREDENCE_KEY=f"{text}\n")
        with Client(url, key="cred_wrong") as client, pytest.raises(CredenceAPIError) as error:
            list(client.jobs())
        assert error.value.status == 401
        assert "cred_wrong" not in str(error.value)
    assert text not in service.log_file.read_text()
