"""`credence migrate`: bring the database's schema to this release."""
# ruff: noqa: PLC0415

import time

from credence.rendering import fail

WAIT_SECONDS = 60.0  # for a database that starts at the same time


def migrate() -> None:
    """Bring the database's schema to this release; wait if the database is not yet reachable.

    API and workers also do this when they start, one process at a time. If you run several, run
    this first: a migration that fails is then reported once, before any process is replaced.

    Example: `CREDENCE_DATABASE_URL=postgresql://… credence migrate`
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while not _migrated(deadline):
        time.sleep(1.0)


def _migrated(deadline: float) -> bool:
    """Migrate; False if the database is not reachable yet."""
    from core.database import database
    from core.exceptions import InvalidSetting, Unavailable
    from core.settings import load_settings

    try:
        database.migrate(database.Database(load_settings().sqlalchemy_url))
    except InvalidSetting as error:
        fail(str(error), 2)
    except Unavailable as error:
        if time.monotonic() > deadline:
            fail(f"{error} (CREDENCE_DATABASE_URL)", 1)
        return False
    return True
