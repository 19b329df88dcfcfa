"""Real faults, one each: the doctor names it, and the rest is as before."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from redis import Redis
from sqlalchemy import text

from core.clock import now
from core.context import Context, open_context
from core.database.schema import WorkerRow
from core.maintenance import checks, doctor
from core.maintenance.checks import Finding
from core.maintenance.doctor import Check, State, examine, verdict
from core.settings import Settings, load_settings
from tests.core.conftest import queue
from tests.core.postgresql import running_postgresql
from tests.core.redis_server import RedisServer
from tests.waiting import free_port

PASSWORD = "pass word/with:signs"
QUOTED = "pass%20word%2Fwith%3Asigns"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


def findings(settings: Settings) -> dict[str, Finding]:
    return {diagnosis.name: diagnosis.finding for diagnosis in examine(settings)}


def broken(settings: Settings) -> dict[str, str]:
    found = findings(settings)
    assert all(f.advice for f in found.values() if f.state is not State.GOOD)
    return {name: f.found for name, f in found.items() if f.state is State.BROKEN}


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
    assert broken(context.settings) == {}
    assert found["schema"].state is found["workers"].state is found["queue"].state is State.GOOD
    assert sorted(path for path in store.rglob("*") if path.name != ".incoming") == before


def test_before_the_first_start_only_servers_are_looked_into(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path / "data")
    found = findings(settings)
    assert found["data directory"].state is State.WARNING
    assert "database" not in found
    assert verdict(examine(settings)) == "good"
    assert not settings.data_dir.exists()
    away = f"postgresql://credence@127.0.0.1:{free_port()}/credence"
    settings = load_settings(data_dir=tmp_path / "data", database_url=away)
    assert broken(settings).keys() == {"database"}
    assert verdict(examine(settings)) == "broken"


@pytest.mark.stack
@needs_root
def test_a_disk_that_cannot_be_written_or_is_full(tmp_path: Path) -> None:
    with mounted(tmp_path / "readable", "ro,size=1m") as folder:
        found = findings(load_settings(data_dir=folder))
        assert found["data directory"].state is State.BROKEN
        assert not {"database", "broker", "artifact store"} & found.keys()
    with mounted(tmp_path / "full", "size=1m,mode=700") as folder:
        (folder / "filler").write_bytes(b"x" * (2**20 - 4096))
        with pytest.raises(OSError, match="No space left"):
            (folder / "more").write_bytes(b"x" * 2**16)
        assert "disk" in broken(load_settings(data_dir=folder))


def test_a_directory_that_others_may_read(context: Context) -> None:
    context.settings.data_dir.chmod(0o755)
    assert "755" in findings(context.settings)["data directory"].found


@pytest.mark.stack
def test_a_wrong_password_at_postgresql(tmp_path: Path) -> None:
    with running_postgresql() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER USER credence PASSWORD 'right'")
            hba = Path(url.partition("?host=")[2]) / "data" / "pg_hba.conf"
            hba.write_text("local all all scram-sha-256\n")
            connection.execute("SELECT pg_reload_conf()")
        (tmp_path / "data").mkdir(mode=0o700)
        wrong, right = (
            load_settings(
                data_dir=tmp_path / "data",
                database_url=url.replace("credence@", f"credence:{password}@"),
            )
            for password in (QUOTED, "right")
        )
        assert broken(wrong).keys() == {"database"}
        assert "password authentication failed" in broken(wrong)["database"]
        found = findings(right)
        assert found["database"].state is State.GOOD
        assert "right" not in found["database"].found
        open_context(right).close()
        assert broken(right) == {}


@pytest.mark.stack
def test_a_redis_that_is_away_or_locked(context: Context, redis: RedisServer) -> None:
    folder = context.settings.data_dir
    away = load_settings(data_dir=folder, broker_url=f"redis://:{QUOTED}@127.0.0.1:{free_port()}/0")
    assert broken(away).keys() == {"broker"}
    with redis.frozen():
        hanging = load_settings(data_dir=folder, broker_url=redis.url)
        (found,) = examine(hanging, [Check("broker", checks.broker, seconds=0.5)])
    assert found.finding.found == "no answer within 0.5 s", "and not after Redis' own 10 s"
    with_password = redis.url.replace("redis://", f"redis://:{QUOTED}@")
    with Redis.from_url(redis.url) as client:
        client.config_set("requirepass", "right")
        try:
            told = broken(load_settings(data_dir=folder, broker_url=with_password))
        finally:
            client.config_set("requirepass", "")
    assert told.keys() == {"broker"}
    assert PASSWORD not in str(told)
    assert QUOTED not in str(told)


def test_a_damaged_sqlite_file(context: Context, tmp_path: Path) -> None:
    """A page that is overwritten in the middle, then a header that is none."""
    queue(context)
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
    assert "integrity" in broken(context.settings)
    shutil.copy(saved, path)
    assert broken(context.settings).keys() == {"workers"}, "none is live, and a job waits"
    path.write_bytes(b"no database at all" * 1000)
    assert "database" in broken(context.settings)


def test_a_database_of_a_newer_release_and_one_that_was_never_migrated(context: Context) -> None:
    with context.database.begin() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    assert "schema" not in broken(context.settings), "the later one has only expanded it"
    with context.database.begin() as session:
        session.execute(text("UPDATE schema_compatibility SET compatible_from = '9999'"))
    assert "9999" in broken(context.settings)["schema"]
    with context.database.begin() as session:
        session.execute(text("DELETE FROM alembic_version"))
    found = findings(context.settings)["schema"]
    assert (found.state, found.advice) == (State.WARNING, "`credence migrate`")


def test_clocks_that_differ(context: Context) -> None:
    """Somebody whose clock is ahead has written, or this clock was set back; leases are 15 s."""
    for seconds, state in ((0, State.GOOD), (3600, State.BROKEN)):
        moment = now() + timedelta(seconds=seconds)
        with context.database.begin() as session:
            session.merge(WorkerRow(id="w", device="cpu", started_at=now(), heartbeat_at=moment))
        assert findings(context.settings)["clock"].state is state, seconds


def test_workers_that_are_gone_and_jobs_that_nobody_hears_of(context: Context) -> None:
    job = queue(context)
    assert broken(context.settings).keys() == {"workers"}
    context.workers.beat("w", "cpu", now())
    with context.database.begin() as session:
        then = {"then": now() - timedelta(hours=1)}
        session.execute(text("UPDATE jobs SET queued_at = :then"), then)
    assert "queue" in broken(context.settings), "although a worker is idle"
    context.jobs.claim(job, "w", lease_seconds=-1)
    found = findings(context.settings)
    assert found["queue"].state is State.GOOD
    assert found["leases"].found.startswith("1 of 1 ")
