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


def test_owners_share_and_an_admin_sees_who_did_what(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (anna,) = keys(data, "create", "--name", "anna", "--scope", "train")
    (ben,) = keys(data, "create", "--name", "ben", "--scope", "train", "--owner", "team")
    (admin,) = keys(data, "create", "--name", "boss", "--scope", "admin", "--queued-jobs", "3")
    told = {key["name"]: key for key in json.loads("\n".join(keys(data, "list", "--json")))}
    assert [told[name]["owner"] for name in ("anna", "ben", "boss")] == ["anna", "team", "boss"]
    assert told["boss"]["limits"]["queued_jobs"] == 3
    table = tmp_path / "table.csv"
    table.write_text("x,y\n1,2\n3,4\n")
    with serving(tmp_path, "api") as service:

        def run(key: str, *arguments: str) -> str:
            return printed(*arguments, url=service.url, CREDENCE_KEY=key)

        dataset = json.loads(run(anna, "datasets", "upload", str(table), "--json"))["id"]
        assert json.loads(run(ben, "datasets", "list", "--json")) == []
        assert run(anna, "datasets", "share", dataset).strip() == "shared with nobody"
        run(anna, "datasets", "share", dataset, "--with", "team")
        assert [d["id"] for d in json.loads(run(ben, "datasets", "list", "--json"))] == [dataset]
        run(anna, "datasets", "share", dataset, "--private")
        lines = json.loads(run(admin, "audit", "--object", dataset, "--json"))
        assert [line["action"] for line in lines] == ["dataset.share"] * 2 + ["dataset.create"]
        assert {line["actor"] for line in lines} == {"anna"}
        refused = command("audit", url=service.url, CREDENCE_KEY=anna)
        assert refused.exit_code == 1
        assert "scope admin" in refused.stderr
