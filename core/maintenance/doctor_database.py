"""Checks of the database, and of what it tells of workers, jobs and clocks."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import func, make_url, select, text
from sqlalchemy.orm import Session

from core.access.keys import Keys, read_key_file
from core.clock import database_now, now
from core.database.database import opened
from core.database.dialects import is_sqlite
from core.database.schema import JobRow, VersionRow, WorkerRow
from core.jobs.backlog import Backlog, read_backlog
from core.maintenance.findings import Finding, State
from core.settings import Settings

SKEW_SECONDS = 2.0  # of clocks: what NTP keeps a hundred times better
QUEUE_SECONDS = 60.0  # idle workers send the wake-ups of what waits again every ten


def connection(settings: Settings) -> Finding:
    """That it answers: raises otherwise."""
    url = make_url(settings.sqlalchemy_url)
    path = Path(url.database or "") if url.get_backend_name() == "sqlite" else None
    if path is not None and not path.exists():
        advice = "the first start makes it"
        return Finding(State.WARNING, f"{path} does not exist", advice, is_missing=True)
    with _session(settings):
        return Finding(State.GOOD, f"{url.render_as_string(hide_password=True)} answers")


def integrity(settings: Settings) -> Finding:
    """SQLite's own check of its file; a server looks after its own."""
    with _session(settings) as session:
        if not is_sqlite(session):
            return Finding(State.GOOD, "left to the server")
        told = session.scalars(text("PRAGMA quick_check(3)")).all()
    if list(told) == ["ok"]:
        return Finding(State.GOOD, "quick_check: ok")
    advice = "restore a backup (`credence restore`), or save what `sqlite3 FILE .recover` finds"
    return Finding(State.BROKEN, f"quick_check: {'; '.join(map(str, told))}", advice)


def schema(settings: Settings) -> Finding:
    """That it is this release's."""
    config = Config()
    config.set_main_option("script_location", "core:database/migrations")
    script = ScriptDirectory.from_config(config)
    head, known = script.get_current_head(), {r.revision for r in script.walk_revisions()}
    with _session(settings) as session:
        current = MigrationContext.configure(session.connection()).get_current_revision()
    if current == head:
        return Finding(State.GOOD, f"release {current}")
    if current is None or current in known:
        found, advice = f"{current or 'none yet'}, this release has {head}", "`credence migrate`"
        return Finding(State.WARNING, found, advice, is_missing=True)
    found = f"{current} is of a newer release: this one has {head}"
    return Finding(State.BROKEN, found, "run the release that made it, or restore a backup")


def clock(settings: Settings) -> Finding:
    """How far this machine's clock is from the database's, and from what others wrote."""
    with _session(settings) as session:
        skews = [("the database server", _server_skew(session))]
        newest = _newest(session)
    if newest is not None:  # what was written is past: only a future is a fault
        skews.append(("what was written last", max(0.0, (newest - now()).total_seconds())))
    whom, skew = max(skews, key=lambda entry: abs(entry[1]))
    if abs(skew) <= SKEW_SECONDS:
        return Finding(State.GOOD, "agrees with the database")
    found = f"{abs(skew):.0f} s {'behind' if skew > 0 else 'ahead of'} {whom}"
    state = State.BROKEN if abs(skew) >= settings.lease_seconds else State.WARNING
    return Finding(state, found, "set clocks by NTP on all machines: times of jobs depend on them")


def workers(settings: Settings) -> Finding:
    """That there are some, if there is work."""
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
    """That claimed jobs have the workers that claimed them."""
    backlog = _backlog(settings)
    if backlog.lease_ended:
        found = f"{backlog.lease_ended} of {backlog.claimed} running jobs have lost their worker"
        advice = "a live worker takes them back within seconds: see workers, and ask again"
        return Finding(State.WARNING, found, advice)
    return Finding(State.GOOD, f"{backlog.claimed} jobs run")


def queue(settings: Settings) -> Finding:
    """That what waits, waits for a reason: otherwise no wake-up gets to a worker."""
    backlog = _backlog(settings)
    found = f"{backlog.queued} wait, the oldest for {backlog.oldest_seconds:.0f} s"
    idle = sum(backlog.live_workers.values()) - backlog.claimed
    if backlog.oldest_seconds > QUEUE_SECONDS and idle > 0:
        found += f", while {idle} workers are idle: wake-ups do not reach them"
        advice = "give API and workers the same CREDENCE_BROKER_URL, and restart the workers"
        return Finding(State.BROKEN, found, advice)
    return Finding(State.GOOD, found if backlog.queued else "nothing waits")


def keys(settings: Settings) -> Finding:
    """Who is let in: raises when the file with the first key holds none."""
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
    """Seconds that this clock is behind the server's; SQLite's is this one."""
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
