"""Real faults, one each: the doctor names it, and the rest is as before."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
import redis
from sqlalchemy import text

from core.clock import now
from core.context import Context, open_context
from core.database.schema import WorkerRow
from core.jobs.jobs import TrainSpec
from core.maintenance import checks, doctor
from core.maintenance.checks import Finding
from core.maintenance.doctor import Check, State, examine, verdict
from core.settings import Settings, load_settings
from models.config import ModelConfig
from tests.core.postgresql import running_postgresql
from tests.core.redis_server import running_redis
from tests.ports import free_port

PASSWORD = "pass word/with:signs"
QUOTED = "pass%20word%2Fwith%3Asigns"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    opened = open_context(load_settings(data_dir=tmp_path / "data"))
    yield opened
    opened.close()


def findings(settings: Settings) -> dict[str, Finding]:
    return {diagnosis.name: diagnosis.finding for diagnosis in examine(settings)}


def broken(settings: Settings) -> dict[str, str]:
    found = findings(settings)
    assert all(f.advice for f in found.values() if f.state is not State.GOOD)
    return {name: f.found for name, f in found.items() if f.state is State.BROKEN}


def queue_job(context: Context) -> str:
    dataset, _ = context.datasets.add_columns("small", {"x": [1.0, 2.0], "y": [1.0, 4.0]})
    spec = TrainSpec(model="square", dataset=dataset.id, config=ModelConfig(target="y"))
    return context.jobs.create(spec).id


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A small file system in memory: what fills or forbids it harms nothing else."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=False)
    if done.returncode:
        pytest.skip("may not mount here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_healthy_installation_has_nothing_broken_and_is_left_as_it_was(context: Context) -> None:
    context.workers.beat("w", "cpu", now())
    store = context.settings.artifact_root
    before = sorted(path for path in store.rglob("*") if path.name != ".incoming")
    found = findings(context.settings)
    assert list(found) == [check.name for check in doctor.CHECKS]
    assert {name for name, f in found.items() if f.state is State.BROKEN} == set()
    assert found["schema"].state is found["workers"].state is found["queue"].state is State.GOOD
    assert sorted(path for path in store.rglob("*") if path.name != ".incoming") == before


def test_before_the_first_start_there_is_nothing_to_look_into(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path / "data")
    found = findings(settings)
    assert found["data directory"].state is State.WARNING
    assert "database" not in found
    assert verdict(examine(settings)) == "good"
    assert not settings.data_dir.exists()


def test_a_database_elsewhere_is_asked_before_the_first_start(tmp_path: Path) -> None:
    away = f"postgresql://credence@127.0.0.1:{free_port()}/credence"
    settings = load_settings(data_dir=tmp_path / "data", database_url=away)
    found = examine(settings)
    assert [one.name for one in found if one.finding.state is State.BROKEN] == ["database"]
    assert verdict(found) == "broken"


@needs_root
def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "ro,size=1m") as folder:
        assert broken(load_settings(data_dir=folder)).keys() >= {"data directory"}
        found = findings(load_settings(data_dir=folder))
        assert "Read-only file system" in found["data directory"].found
        assert not {"database", "broker", "artifact store"} & found.keys()


@needs_root
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=1m,mode=700") as folder:
        (folder / "filler").write_bytes(b"x" * (2**20 - 4096))
        with pytest.raises(OSError, match="No space left"):
            (folder / "more").write_bytes(b"x" * 2**16)
        found = broken(load_settings(data_dir=folder))
        assert "0.0 of 0.0 GiB free" in found["disk"]


def test_a_directory_that_others_may_read(context: Context) -> None:
    context.settings.data_dir.chmod(0o755)
    assert "open to others (755)" in findings(context.settings)["data directory"].found


def test_a_wrong_password_at_postgresql(tmp_path: Path) -> None:
    with running_postgresql() as url:
        folder = Path(url.partition("?host=")[2])
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER USER credence PASSWORD 'right'")
            hba = folder / "data" / "pg_hba.conf"
            hba.write_text("local all all scram-sha-256\n")
            connection.execute("SELECT pg_reload_conf()")
        with_password = url.replace("credence@", f"credence:{QUOTED}@")
        (tmp_path / "data").mkdir(mode=0o700)
        settings = load_settings(data_dir=tmp_path / "data", database_url=with_password)
        (found,) = [f for f in examine(settings) if f.finding.state is State.BROKEN]
        assert found.name == "database"
        assert 'password authentication failed for user "credence"' in found.finding.found
        right = url.replace("credence@", "credence:right@")
        settings = load_settings(data_dir=tmp_path / "data", database_url=right)
        found_now = findings(settings)
        assert found_now["database"].state is State.GOOD
        assert "right" not in found_now["database"].found
        assert found_now["schema"].found.startswith("none yet")
        open_context(settings).close()
        assert broken(settings) == {}


def test_redis_is_away_or_wants_another_password(tmp_path: Path, context: Context) -> None:
    away = f"redis://:{QUOTED}@127.0.0.1:{free_port()}/0"
    settings = load_settings(data_dir=context.settings.data_dir, broker_url=away)
    assert list(broken(settings)) == ["broker"]
    assert "refused" in broken(settings)["broker"]
    with running_redis(tmp_path) as server:
        with redis.Redis.from_url(server.url) as client:
            client.config_set("requirepass", "right")
        with_password = server.url.replace("redis://", f"redis://:{QUOTED}@")
        settings = load_settings(data_dir=context.settings.data_dir, broker_url=with_password)
        found = str(broken(settings))
        assert "broker" in found
        assert PASSWORD not in found
        assert QUOTED not in found


def test_what_hangs_is_not_waited_for(tmp_path: Path, context: Context) -> None:
    with running_redis(tmp_path) as server:
        settings = load_settings(data_dir=context.settings.data_dir, broker_url=server.url)
        wanted = [Check("broker", checks.broker, seconds=0.5)]
        with server.frozen():
            started = time.monotonic()
            (found,) = examine(settings, wanted)
            assert time.monotonic() - started < 9  # and not Redis' own 10 s
        assert found.finding.found == "no answer within 0.5 s"
        assert found.finding.state is State.BROKEN


def test_a_damaged_sqlite_file(context: Context, tmp_path: Path) -> None:
    """A page that is overwritten in the middle, then a header that is none."""
    queue_job(context)
    context.database.dispose()
    path = context.settings.data_dir / "credence.db"
    saved = shutil.copy(path, tmp_path / "saved.db")
    with context.database.read() as session:
        jobs = text("SELECT rootpage FROM sqlite_master WHERE name = 'jobs'")
        page = session.scalars(jobs).one()
    context.database.dispose()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 100)
    assert set(broken(context.settings)) >= {"integrity"}
    shutil.copy(saved, path)
    assert broken(context.settings) == {"workers": "none is live, and 1 jobs wait"}
    path.write_bytes(b"no database at all" * 1000)
    assert "file is not a database" in broken(context.settings)["database"]


def test_a_database_of_a_newer_release_and_one_that_was_never_migrated(context: Context) -> None:
    with context.database.begin() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    assert "schema" not in broken(context.settings), "the later one has only expanded it"
    with context.database.begin() as session:
        session.execute(text("UPDATE schema_compatibility SET compatible_from = '9999'"))
    assert "9999 is of a later release" in broken(context.settings)["schema"]
    with context.database.begin() as session:
        session.execute(text("DELETE FROM alembic_version"))
    found = findings(context.settings)["schema"]
    assert (found.state, found.advice) == (State.WARNING, "`credence migrate`")


def test_clocks_that_differ(context: Context) -> None:
    """Somebody whose clock is ahead has written, or this clock was set back; leases are 15 s."""
    for seconds, state in ((1, State.GOOD), (10, State.WARNING), (3600, State.BROKEN)):
        moment = now() + timedelta(seconds=seconds)
        with context.database.begin() as session:
            session.merge(WorkerRow(id="w", device="cpu", started_at=now(), heartbeat_at=moment))
        assert findings(context.settings)["clock"].state is state, seconds


def test_workers_that_are_gone_and_jobs_that_nobody_hears_of(context: Context) -> None:
    job = queue_job(context)
    assert broken(context.settings) == {"workers": "none is live, and 1 jobs wait"}
    context.workers.beat("w", "cpu", now())
    with context.database.begin() as session:
        session.execute(
            text("UPDATE jobs SET queued_at = :then"), {"then": (now() - timedelta(hours=1))}
        )
    assert "while 1 workers are idle" in broken(context.settings)["queue"]
    context.jobs.claim(job, "w", lease_seconds=-1)
    found = findings(context.settings)
    assert found["queue"].state is State.GOOD
    assert found["leases"].found == "1 of 1 running jobs have lost their worker"


def test_keys(context: Context, tmp_path: Path) -> None:
    folder = context.settings.data_dir
    off = findings(load_settings(data_dir=folder, auth="off"))["keys"]
    assert off.state is State.WARNING
    (tmp_path / "key").write_text("short")
    wrong = load_settings(data_dir=folder, admin_key_file=tmp_path / "key")
    assert "holds 5 characters" in broken(wrong)["keys"]


def test_more_threads_than_cores_and_a_device_that_is_not_there(context: Context) -> None:
    folder = context.settings.data_dir
    assert findings(load_settings(data_dir=folder, threads=1024))["threads"].state is State.WARNING
    assert "this machine has" in broken(load_settings(data_dir=folder, device="cuda:99"))["device"]
