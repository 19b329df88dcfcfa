"""Settings: refused at start by name, with what would be right."""

import os
from pathlib import Path

import pytest
from kombu import Connection
from sqlalchemy import make_url

from core.exceptions import InvalidSetting
from core.settings import Settings, load_settings
from core.telemetry.otel_variables import wants_traces
from core.urls import mask


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("CREDENCE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_defaults_need_nothing_else(tmp_path: Path) -> None:
    settings = load_settings()
    assert settings.sqlalchemy_url == f"sqlite:///{tmp_path}/.credence/credence.db"
    assert settings.resolved_broker_url == "filesystem://"
    assert settings.artifact_root == tmp_path / ".credence" / "artifacts"
    assert (settings.max_samples, settings.max_work) == (10_000, 10_000_000)
    assert (settings.worker_metrics_port, settings.device, settings.auth) == (9101, "auto", "auto")


def test_the_environment_is_read_and_overrides_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDENCE_DATABASE_URL", "postgres://user:secret@db:5432/credence")
    monkeypatch.setenv("CREDENCE_BROKER_URL", "redis://redis:6379/0")
    monkeypatch.setenv("CREDENCE_ARTIFACT_URL", "file:///srv/my%20models")
    monkeypatch.setenv("CREDENCE_DEVICE", "CUDA:1")
    monkeypatch.setenv("CREDENCE_LOG_LEVEL", "WARNING")
    monkeypatch.setenv("CREDENCE_MAX_SAMPLES", "500")
    settings = load_settings(max_samples=200)
    assert settings.sqlalchemy_url == "postgresql+psycopg://user:secret@db:5432/credence"
    assert settings.resolved_broker_url == "redis://redis:6379/0"
    assert settings.artifact_root == Path("/srv/my models")
    assert (settings.device, settings.log_level, settings.max_samples) == ("cuda:1", "warning", 200)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEVICE", "gpu"),
        ("MAX_WORK", "0"),
        ("MAX_WORK", "many"),
        ("TRAINING_MEMORY_BYTES", "2"),
        ("MAX_BODY_BYTES", "12"),
        ("MAX_SAMPLES", "-3"),
        ("WORKER_METRICS_PORT", "65536"),
        ("LEASE_SECONDS", "1"),
        ("THREADS", "0"),
        ("AUTH", "on"),
        ("LOG_FORMAT", "xml"),
        ("DATABASE_URL", "mysql://h/x"),
        ("DATABASE_URL", "sqlite://"),
        ("DATABASE_URL", "postgresql://h:port/x"),
        ("BROKER_URL", "amqp://h"),
        ("BROKER_URL", "redis://h:99999"),
        ("ARTIFACT_URL", "s3://"),
        ("ARTIFACT_URL", "s3://bucket/a//b"),
        ("ARTIFACT_URL", "file://host/x"),
        ("MAX_QUEUED_WORK", "5"),  # less than MAX_WORK
    ],
)
def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"CREDENCE_{name}", value)
    with pytest.raises(InvalidSetting) as refused:
        load_settings()
    assert str(refused.value).startswith(f"CREDENCE_{name}={value}")
    assert len(str(refused.value).splitlines()) == 1


def test_a_misspelt_name_is_refused_with_the_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDENCE_MAX_WROK", "5")
    with pytest.raises(InvalidSetting, match=r"CREDENCE_MAX_WROK .* CREDENCE_MAX_WORK"):
        load_settings()


def test_the_clients_variables_are_not_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDENCE_URL", "http://127.0.0.1:8000")
    assert isinstance(load_settings(), Settings)


def test_passwords_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDENCE_DATABASE_URL", "mysql://me:p@ss/word@host/x")
    monkeypatch.setenv("CREDENCE_BROKER_URL", "amqp://:hunter2@host")
    with pytest.raises(InvalidSetting) as refused:
        load_settings()
    assert "ss/word" not in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_passwords_come_from_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("p@ss:w/rd %\n")
    monkeypatch.setenv("CREDENCE_DATABASE_URL", "postgres://me@db:5432/credence?sslmode=require")
    monkeypatch.setenv("CREDENCE_DATABASE_PASSWORD_FILE", str(secret))
    monkeypatch.setenv("CREDENCE_BROKER_URL", "redis://redis:6379/0")
    monkeypatch.setenv("CREDENCE_BROKER_PASSWORD_FILE", str(secret))
    settings = load_settings()
    database, broker = make_url(settings.sqlalchemy_url), Connection(settings.resolved_broker_url)
    assert (database.username, database.password, database.host) == ("me", "p@ss:w/rd %", "db")
    assert (database.database, database.query["sslmode"]) == ("credence", "require")
    assert (broker.password, broker.hostname, broker.port) == ("p@ss:w/rd %", "redis", 6379)
    assert "w/rd" not in repr(settings), "what is logged of the settings has no secret in it"


@pytest.mark.parametrize(
    ("url", "content", "reason"),
    [
        ("postgresql://me@db/x", None, "PASSWORD_FILE={}: cannot be read"),
        ("postgresql://me@db/x", " \n", "PASSWORD_FILE={}: is empty"),
        ("postgresql://me:pw@db/x", "a", "_URL=postgresql+psycopg://me:***@db/x has a password "),
        ("postgresql://db/x?user=me&password=pw", "a", "db/x?user=me&password=*** has a password"),
        ("sqlite:////tmp/x.db", "a", "CREDENCE_DATABASE_URL names no server"),
    ],
)
def test_a_wrong_password_file_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, content: str | None, reason: str
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("CREDENCE_DATABASE_URL", url)
    monkeypatch.setenv("CREDENCE_DATABASE_PASSWORD_FILE", str(file))
    with pytest.raises(InvalidSetting) as refused:
        load_settings()
    assert reason.format(file) in str(refused.value)
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("redis://:secret@host:6379/0", "redis://:***@host:6379/0"),
        ("postgresql+psycopg://me:a:b@c@host/db", "postgresql+psycopg://me:***@host/db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("postgresql://host/db?password=a&x=1", "postgresql://host/db?password=***&x=1"),
        ("sqlite:////tmp/a@b:c.db", "sqlite:////tmp/a@b:c.db"),
        ("12", "12"),
    ],
)
def test_masking_hides_the_password_alone(url: str, masked: str) -> None:
    assert mask(url) == masked


def test_the_data_directory_is_for_its_owner(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path / "new" / "data")
    settings.prepare_data_dir()
    assert settings.data_dir.stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidSetting, match="CREDENCE_DATA_DIR"):
        load_settings(data_dir=tmp_path / "file").prepare_data_dir()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("webhooks", "https://hooks.example.org"),
        ("webhooks", "private+http://receiver/path"),
        ("webhooks", "private+ftp://receiver"),
        ("sources", "http://host/"),
        ("sources", "s3://lake/*/"),
        ("sources", "file:///srv/../etc/"),
        ("destinations", "https://host/"),
        ("destinations", "s3://lake/file"),
        ("destinations", "file:///srv/../etc/"),
        ("destinations", "shop"),
    ],
)
def test_nothing_may_be_reached_and_wrong_entries_are_named(name: str, wrong: str) -> None:
    assert getattr(load_settings(), name) == ""
    with pytest.raises(InvalidSetting, match=f"CREDENCE_{name.upper()}") as refused:
        load_settings(**{name: wrong})
    assert wrong in str(refused.value)


def test_no_destination_holds_or_is_in_the_services_own_data(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for folder in (tmp_path, data, data / "inner"):
        with pytest.raises(InvalidSetting):
            load_settings(data_dir=data, destinations=f"file://{folder}/")
    assert load_settings(data_dir=data, destinations=f"file://{tmp_path}/beside/").destinations


@pytest.mark.parametrize("folder", ["", "data/", "data/credence.db", "link/"])
def test_no_source_holds_the_services_own_data(tmp_path: Path, folder: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    given = {"data_dir": tmp_path / "data", "sources": f"file://{tmp_path}/{folder}"}
    if folder == "data/credence.db":  # a file in it, not around it
        given["source_secrets_file"] = tmp_path / "data" / "credence.db"
        (tmp_path / "data" / "credence.db").write_text("")
    with pytest.raises(InvalidSetting):
        load_settings(**given)


COLLECTOR = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        (COLLECTOR, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://c/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        (COLLECTOR | {"OTEL_SDK_DISABLED": "true"}, False),
        (COLLECTOR | {"OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_a_collector_switches_traces_on(variables: dict[str, str], wanted: bool) -> None:
    assert wants_traces(variables) is wanted
