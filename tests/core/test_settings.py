"""Settings: refused at start by name, with what would be right."""

import os
from pathlib import Path

import pytest
from kombu import Connection
from sqlalchemy import make_url

from core.exceptions import InvalidSetting
from core.settings import Settings, load_settings
from core.urls import mask


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("CREDENCE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_defaults_need_nothing_else(tmp_path: Path) -> None:
    settings = load_settings()
    assert settings.data_dir == tmp_path / ".credence"
    assert settings.sqlalchemy_url == f"sqlite:///{tmp_path}/.credence/credence.db"
    assert settings.resolved_broker_url == "filesystem://"
    assert settings.artifact_root == tmp_path / ".credence" / "artifacts"
    assert (settings.max_samples, settings.max_work) == (10_000, 10_000_000)
    assert settings.training_memory_bytes == 2 * 2**30
    assert (settings.worker_metrics_port, settings.device, settings.auth) == (9101, "auto", "auto")
    assert settings.threads >= 1


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


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose files pass on variables that nobody has set as empty ones."""
    monkeypatch.setenv("CREDENCE_DATABASE_URL", "")
    assert load_settings().database_url is None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("DEVICE", "gpu", "CREDENCE_DEVICE=gpu: give auto, cpu, cuda or cuda:N"),
        ("MAX_WORK", "0", "CREDENCE_MAX_WORK=0: Input should be greater than or equal to 1"),
        ("TRAINING_MEMORY_BYTES", "2", "CREDENCE_TRAINING_MEMORY_BYTES=2: Input should be greater"),
        ("MAX_WORK", "many", "CREDENCE_MAX_WORK=many: Input should be a valid integer"),
        ("MAX_BODY_BYTES", "12", "CREDENCE_MAX_BODY_BYTES=12: Input should be greater than"),
        ("MAX_SAMPLES", "-3", "CREDENCE_MAX_SAMPLES=-3: Input should be greater than"),
        (
            "WORKER_METRICS_PORT",
            "65536",
            "CREDENCE_WORKER_METRICS_PORT=65536: Input should be",
        ),
        ("LEASE_SECONDS", "1", "CREDENCE_LEASE_SECONDS=1: Input should be greater than"),
        ("THREADS", "0", "CREDENCE_THREADS=0: Input should be greater than or equal to 1"),
        ("AUTH", "on", "CREDENCE_AUTH=on: Input should be 'auto' or 'off'"),
        ("LOG_FORMAT", "xml", "CREDENCE_LOG_FORMAT=xml: Input should be 'text' or 'json'"),
        ("DATABASE_URL", "mysql://h/x", "CREDENCE_DATABASE_URL=mysql://h/x: give sqlite:////path"),
        ("DATABASE_URL", "credence.db", "CREDENCE_DATABASE_URL=credence.db: give sqlite:////path"),
        ("DATABASE_URL", "sqlite://", "CREDENCE_DATABASE_URL=sqlite://: service and worker share"),
        ("DATABASE_URL", "postgresql://h:port/x", "CREDENCE_DATABASE_URL=postgresql://h:port/x: "),
        ("BROKER_URL", "amqp://h", "CREDENCE_BROKER_URL=amqp://h: give filesystem:// or redis://"),
        ("BROKER_URL", "redis://h:99999", "CREDENCE_BROKER_URL=redis://h:99999: Port out of range"),
        ("ARTIFACT_URL", "s3://", "CREDENCE_ARTIFACT_URL=s3://: give s3://bucket/prefix"),
        ("ARTIFACT_URL", "s3://bucket/a//b", "CREDENCE_ARTIFACT_URL=s3://bucket/a//b: give s3://"),
        ("ARTIFACT_URL", "s3://me:pw@bucket", "CREDENCE_ARTIFACT_URL=s3://me:***@bucket: credent"),
        ("ARTIFACT_URL", "models", "CREDENCE_ARTIFACT_URL=models: give file:///path/to/directory"),
        ("ARTIFACT_URL", "file://host/x", "CREDENCE_ARTIFACT_URL=file://host/x: give file:///path"),
        ("MAX_QUEUED_WORK", "5", "CREDENCE_MAX_QUEUED_WORK=5 is less than CREDENCE_MAX_WORK"),
        ("MAX_WROK", "5", "CREDENCE_MAX_WROK is not a setting: did you mean CREDENCE_MAX_WORK?"),
        ("DATADIR", "x", "CREDENCE_DATADIR is not a setting: did you mean CREDENCE_DATA_DIR?"),
    ],
)
def test_a_wrong_setting_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(f"CREDENCE_{name}", value)
    with pytest.raises(InvalidSetting) as refused:
        load_settings()
    assert message in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_all_wrong_settings_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDENCE_AUTH", "on")
    monkeypatch.setenv("CREDENCE_THREADS", "none")
    with pytest.raises(InvalidSetting) as refused:
        load_settings(nonsense=1)
    threads, auth, nonsense = str(refused.value).splitlines()
    assert threads.startswith("CREDENCE_THREADS=none: ")
    assert auth.startswith("CREDENCE_AUTH=on: ")
    assert nonsense.startswith("CREDENCE_NONSENSE is not a setting: did you mean CREDENCE_")


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


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("p@ss:w/rd %\n")
    return path


def test_passwords_come_from_files(monkeypatch: pytest.MonkeyPatch, secret: Path) -> None:
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
    ("url", "content", "message"),
    [
        ("postgresql://me@db/x", None, "PASSWORD_FILE={}: cannot be read (No such file or dir"),
        (
            "postgresql://me@db/x",
            " \n",
            "PASSWORD_FILE={}: is empty: give a file that holds the se",
        ),
        ("postgresql://me:pw@db/x", "a", "_URL=postgresql+psycopg://me:***@db/x has a password "),
        ("postgresql://db/x?user=me&password=pw", "a", "db/x?user=me&password=*** has a password"),
        ("sqlite:////tmp/x.db", "a", "PASSWORD_FILE={}: CREDENCE_DATABASE_URL names no server"),
        ("", "a", "PASSWORD_FILE={}: CREDENCE_DATABASE_URL names no server that has a password"),
    ],
)
def test_a_wrong_password_file_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, content: str | None, message: str
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("CREDENCE_DATABASE_URL", url)
    monkeypatch.setenv("CREDENCE_DATABASE_PASSWORD_FILE", str(file))
    with pytest.raises(InvalidSetting) as refused:
        load_settings()
    assert message.format(file) in str(refused.value)
    assert "pw" not in str(refused.value)


def test_a_folder_has_no_password(monkeypatch: pytest.MonkeyPatch, secret: Path) -> None:
    monkeypatch.setenv("CREDENCE_BROKER_PASSWORD_FILE", str(secret))
    with pytest.raises(InvalidSetting, match="CREDENCE_BROKER_URL names no server that has a pass"):
        load_settings()


def test_a_bucket_is_no_directory() -> None:
    settings = load_settings(artifact_url="s3://bucket/some/prefix/")
    assert settings.bucket == ("bucket", "some/prefix")
    with pytest.raises(ValueError, match="is in a bucket: s3://bucket/some/prefix/"):
        _ = settings.artifact_root


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


def test_a_data_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidSetting, match=r"CREDENCE_DATA_DIR=.*/file: cannot be created"):
        load_settings(data_dir=tmp_path / "file").prepare_data_dir()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("https://hooks.example.org", "'https://hooks.example.org' is no receiver: give a host"),
        ("private+http://receiver/path", "has a path: give host and port only"),
        ("private+ftp://receiver", "give https://host/path"),
    ],
)
def test_webhooks_are_closed_and_wrong_hosts_named(wrong: str, reason: str) -> None:
    assert load_settings().webhooks == ""
    with pytest.raises(InvalidSetting) as refused:
        load_settings(webhooks=wrong)
    assert str(refused.value).startswith(f"CREDENCE_WEBHOOKS={wrong}: ")
    assert reason in str(refused.value)


def test_sources_are_closed_and_wrong_ones_named(tmp_path: Path) -> None:
    assert load_settings().sources == ""
    for wrong in ("http://host/", "s3://lake/*/", "file:///srv/../etc/"):
        with pytest.raises(InvalidSetting, match="CREDENCE_SOURCES") as refused:
            load_settings(sources=wrong)
        assert wrong in str(refused.value)


def test_destinations_are_closed_and_wrong_ones_named(tmp_path: Path) -> None:
    assert load_settings().destinations == ""
    for wrong in ("https://host/", "s3://lake/file", "file:///srv/../etc/", "s3://lake/*/", "shop"):
        with pytest.raises(InvalidSetting, match="CREDENCE_DESTINATIONS") as refused:
            load_settings(destinations=wrong)
        assert wrong in str(refused.value)
    data = tmp_path / "data"
    for folder in (tmp_path, data, data / "inner"):
        with pytest.raises(InvalidSetting, match="no prediction may be written"):
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
    with pytest.raises(InvalidSetting, match="no data set may be read"):
        load_settings(**given)


def test_a_secrets_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"CREDENCE_SOURCE_SECRETS_FILE=.*none\.toml: cannot"):
        load_settings(source_secrets_file=tmp_path / "none.toml")
