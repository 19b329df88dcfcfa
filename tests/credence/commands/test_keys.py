"""`credence keys`, and a service that asks for what it printed."""

import json
from pathlib import Path

import pytest

from credence.client import Client
from credence.exceptions import CredenceAPIError
from tests.credence.invoking import command, printed
from tests.credence.running import credence, serving


def keys(data_dir: Path, *arguments: str) -> list[str]:
    """The lines that a command prints; it must succeed."""
    done = credence("keys", *arguments, "--data-dir", str(data_dir))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_key_is_printed_once_listed_and_revoked(tmp_path: Path) -> None:
    (text,) = keys(tmp_path, "create", "--name", "laptop", "--scope", "predict")
    assert text.startswith("cred_")
    listed = "\n".join(keys(tmp_path, "list", "--json"))
    assert text not in listed
    (key,) = json.loads(listed)
    assert (key["name"], key["scope"], key["revoked_at"]) == ("laptop", "predict", None)
    keys(tmp_path, "revoke", key["id"], "--yes")
    again = credence("keys", "revoke", key["id"], "--yes", "--data-dir", str(tmp_path))
    assert again.returncode == 1
    wrong = credence("keys", "create", "--name", "x", "--scope", "all", "--data-dir", str(tmp_path))
    assert wrong.returncode == 2
    assert all(scope in wrong.stderr for scope in ("predict", "train", "admin"))


def test_a_service_for_other_machines_needs_a_key_first(tmp_path: Path) -> None:
    refused = credence("api", "--host", "0.0.0.0", "--data-dir", str(tmp_path / "data"))
    assert refused.returncode == 2
    assert "credence keys create" in refused.stderr
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


def test_a_wrong_key_file_is_refused_at_start(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("short")
    done = credence("api", "--data-dir", str(tmp_path / "data"), CREDENCE_ADMIN_KEY_FILE=str(path))
    assert done.returncode == 2
    assert f"CREDENCE_ADMIN_KEY_FILE={path}" in done.stderr
    assert "short" not in done.stderr
