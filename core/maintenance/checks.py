"""The checks of an installation: database, jobs and clocks, then this machine, broker and store."""

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from sqlalchemy import func, make_url, select, text
from sqlalchemy.orm import Session

from core.access.keys import Keys, read_key_file
from core.clock import database_now, now
from core.database.database import opened
from core.database.migrations import revision_of
from core.database.schema import JobRow, VersionRow, WorkerRow
from core.database.statements import is_sqlite
from core.exceptions import NotFound
from core.jobs.backlog import Backlog, read_backlog
from core.jobs.queue import Queue
from core.process.devices import service_device
from core.process.resources import available_cores
from core.settings import Settings
from core.storage import open_store

SKEW_SECONDS = 2.0  # clocks with NTP differ a hundred times less
QUEUE_SECONDS = 60.0  # idle workers send lost messages again every five seconds
LOW_SHARE = 0.1  # of free space; as in the alert "Disk nearly full"
LEAST_FREE_BYTES = 64 * 2**20  # about one data set
PROBE = b"credence doctor"


class State(StrEnum):
    """The result of a check. A warning does not make the verdict `broken`."""

    GOOD = "good"
    WARNING = "warning"
    BROKEN = "broken"


@dataclass(frozen=True)
class Finding:
    """What a check found, and advice if it is not good."""

    state: State
    found: str
    advice: str = ""
    is_missing: bool = False  # nothing is wrong, but checks that need it cannot run yet


def has_broker(settings: Settings) -> bool:
    """Whether the broker is a server."""
    return not settings.resolved_broker_url.startswith("filesystem:")


def has_bucket(settings: Settings) -> bool:
    """Whether the artifact store is a bucket."""
    return settings.bucket is not None


def has_database_server(settings: Settings) -> bool:
    """Whether the database is a server."""
    return make_url(settings.sqlalchemy_url).get_backend_name() != "sqlite"


def connection(settings: Settings) -> Finding:
    """Whether the database answers. Raises if not."""
    url = make_url(settings.sqlalchemy_url)
    path = Path(url.database or "") if url.get_backend_name() == "sqlite" else None
    if path is not None and not path.exists():
        advice = "the first start creates it"
        return Finding(State.WARNING, f"{path} does not exist", advice, is_missing=True)
    with _session(settings):
        return Finding(State.GOOD, f"{url.render_as_string(hide_password=True)} answers")


def integrity(settings: Settings) -> Finding:
    """Whether SQLite's check of its file finds no error. A server is not checked."""
    with _session(settings) as session:
        if not is_sqlite(session):
            return Finding(State.GOOD, "left to the server")
        problems = session.scalars(text("PRAGMA quick_check(3)")).all()
    if list(problems) == ["ok"]:
        return Finding(State.GOOD, "quick_check: ok")
    advice = "restore a backup (`credence restore`), or save what `sqlite3 FILE .recover` finds"
    return Finding(State.BROKEN, f"quick_check: {'; '.join(map(str, problems))}", advice)


def schema(settings: Settings) -> Finding:
    """Whether this release works with the schema."""
    with _session(settings) as session:
        found = revision_of(session.connection())
    if found.number == found.head:
        return Finding(State.GOOD, f"release {found.number}")
    if not found.is_later:
        what = f"{found.number or 'none yet'}, this release has {found.head}"
        return Finding(State.WARNING, what, "`credence migrate`", is_missing=True)
    what = f"{found.number} is of a later release: this one has {found.head}"
    if found.is_compatible:
        return Finding(State.GOOD, f"{what}, and works with it")
    return Finding(State.BROKEN, what, "run the release that made it, or restore a backup")


def clock(settings: Settings) -> Finding:
    """Whether this machine's clock agrees with the database's and with times in its rows."""
    with _session(settings) as session:
        skews = [("the database server", _server_skew(session))]
        newest = _newest(session)
    if newest is not None:  # only a time in the future is a fault
        skews.append(("what was written last", max(0.0, (newest - now()).total_seconds())))
    whom, skew = max(skews, key=lambda entry: abs(entry[1]))
    if abs(skew) <= SKEW_SECONDS:
        return Finding(State.GOOD, "agrees with the database")
    found = f"{abs(skew):.0f} s {'behind' if skew > 0 else 'ahead of'} {whom}"
    state = State.BROKEN if abs(skew) >= settings.lease_seconds else State.WARNING
    return Finding(state, found, "set clocks by NTP on all machines: times of jobs depend on them")


def workers(settings: Settings) -> Finding:
    """Whether workers are live."""
    backlog = _backlog(settings)
    live, known = sum(backlog.live_workers.values()), sum(backlog.known_workers.values())
    found = f"{live} live"
    if not live:
        state = State.BROKEN if backlog.queued else State.WARNING
        waiting = f", and {backlog.queued} jobs wait" if backlog.queued else ""
        return Finding(state, f"none is live{waiting}", "start one: `credence worker` or `serve`")
    if known > live:
        found += f", {known - live} fell silent within 15 minutes"
        return Finding(State.WARNING, found, "look at the logs of those that ended")
    return Finding(State.GOOD, found)


def leases(settings: Settings) -> Finding:
    """Whether running jobs still have their workers."""
    backlog = _backlog(settings)
    if backlog.lease_ended:
        found = f"{backlog.lease_ended} of {backlog.claimed} running jobs have lost their worker"
        advice = "a live worker takes them back within seconds: see workers, and check again"
        return Finding(State.WARNING, found, advice)
    return Finding(State.GOOD, f"{backlog.claimed} jobs run")


def queue(settings: Settings) -> Finding:
    """Whether jobs wait although workers are idle: then messages do not reach the workers."""
    backlog = _backlog(settings)
    found = f"{backlog.queued} wait, the oldest for {backlog.oldest_seconds:.0f} s"
    idle = sum(backlog.live_workers.values()) - backlog.claimed
    if backlog.oldest_seconds > QUEUE_SECONDS and idle > 0:
        found += f", while {idle} workers are idle: wake-ups do not reach them"
        advice = "give API and workers the same CREDENCE_BROKER_URL, and restart the workers"
        return Finding(State.BROKEN, found, advice)
    return Finding(State.GOOD, found if backlog.queued else "nothing waits")


def keys(settings: Settings) -> Finding:
    """Whether keys are required. Raises if CREDENCE_ADMIN_KEY_FILE holds no key."""
    if settings.auth == "off":
        advice = "unset CREDENCE_AUTH unless the network itself keeps others out"
        return Finding(State.WARNING, "CREDENCE_AUTH=off: everybody may do everything", advice)
    if settings.admin_key_file is not None:
        read_key_file(settings.admin_key_file)
    with opened(settings.sqlalchemy_url) as database:
        valid = len(Keys(database).valid())
    if valid or settings.admin_key_file:
        file = " and the one of CREDENCE_ADMIN_KEY_FILE" if settings.admin_key_file else ""
        return Finding(State.GOOD, f"{valid} keys{file}")
    return Finding(State.GOOD, "none: open to this machine, and no other address can be bound")


def _server_skew(session: Session) -> float:
    """Seconds by which this clock is behind the database's; SQLite uses this clock."""
    before = now()
    server = database_now(session)
    return (server - (before + (now() - before) / 2)).total_seconds()


def _newest(session: Session) -> datetime | None:
    moments = (WorkerRow.heartbeat_at, JobRow.created_at, VersionRow.created_at)
    found = [session.scalars(select(func.max(moment))).one() for moment in moments]
    return max((moment for moment in found if moment is not None), default=None)


def _backlog(settings: Settings) -> Backlog:
    with opened(settings.sqlalchemy_url) as database:
        return read_backlog(database)


@contextmanager
def _session(settings: Settings) -> Iterator[Session]:
    with opened(settings.sqlalchemy_url) as database, database.read() as session:
        session.connection()
        yield session


def disk(settings: Settings) -> Finding:
    """Whether there is free space where the data directory is or will be."""
    folder = settings.data_dir
    while not folder.exists():
        folder = folder.parent
    usage = shutil.disk_usage(folder)
    found = f"{usage.free / 2**30:.1f} of {usage.total / 2**30:.1f} GiB free at {folder}"
    advice = "delete data sets and models that nobody uses, or give a larger disk"
    if usage.free < LEAST_FREE_BYTES:
        return Finding(State.BROKEN, found, advice)
    low = usage.free < LOW_SHARE * usage.total
    return Finding(State.WARNING, found, advice) if low else Finding(State.GOOD, found)


def data_directory(settings: Settings) -> Finding:
    """Whether the data directory can be written, and other users cannot read it."""
    folder = settings.data_dir
    if not folder.exists():
        advice = "the first start creates it; or name another in CREDENCE_DATA_DIR"
        return Finding(State.WARNING, f"{folder} does not exist", advice, is_missing=True)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(PROBE)
    except OSError as error:
        reason = f"{folder} cannot be written: {error.strerror}"
        return Finding(State.BROKEN, reason, "give a directory that this user may write")
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        return Finding(State.WARNING, f"{folder} is open to others ({mode:o})", "chmod 700")
    if folder.stat().st_uid != os.geteuid():
        advice = "run this as the user of the service: others see other permissions"
        return Finding(State.WARNING, f"{folder} belongs to another user", advice)
    return Finding(State.GOOD, str(folder))


def threads(settings: Settings) -> Finding:
    """Whether there are more threads than cores."""
    found = f"{settings.threads} threads on {available_cores()} cores"
    if settings.threads > available_cores():
        advice = "CREDENCE_THREADS no larger than the cores: more wait for each other"
        return Finding(State.WARNING, found, advice)
    return Finding(State.GOOD, found)


def device(settings: Settings) -> Finding:
    """Whether this machine has the device. Raises if not."""
    return Finding(State.GOOD, f"{service_device(settings)} (CREDENCE_DEVICE={settings.device})")


def broker(settings: Settings) -> Finding:
    """Whether the broker answers. Raises if not."""
    queue = Queue(settings)
    try:
        queue.check()
    finally:
        queue.close()
    return Finding(State.GOOD, f"{settings.resolved_broker_url.partition(':')[0]} answers")


def store(settings: Settings) -> Finding:
    """Whether the store writes, reads and deletes an artifact."""
    target, key = open_store(settings), f"doctor-{secrets.token_hex(8)}"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe"
        source.write_bytes(PROBE)
        target.put_file(key, source)
    try:
        if target.local_path(key).read_bytes() != PROBE:
            return Finding(State.BROKEN, "reads other bytes than were written", "use another disk")
    finally:
        with suppress(NotFound):
            target.delete(key)
    where = settings.artifact_url if settings.bucket else settings.artifact_root
    return Finding(State.GOOD, f"{where}: written, read, deleted")
