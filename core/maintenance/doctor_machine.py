"""Checks of this machine, its broker and its store."""

import os
import secrets
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from core.exceptions import NotFound
from core.jobs.queue import Queue
from core.maintenance.findings import Finding, State
from core.process.cores import available_cores
from core.process.devices import service_device
from core.settings import Settings
from core.storage import open_store

LOW_SHARE = 0.1  # free: what the alert "Disk nearly full" says
LEAST_FREE_BYTES = 64 * 2**20  # less holds hardly a data set
PROBE = b"credence doctor"


def disk(settings: Settings) -> Finding:
    """Free space where the data directory is, or will be."""
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
    """That it can be written, by writing, and that others cannot read it."""
    folder = settings.data_dir
    if not folder.exists():
        advice = "the first start makes it; or name another in CREDENCE_DATA_DIR"
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
    """No more than there are cores."""
    found = f"{settings.threads} threads on {available_cores()} cores"
    if settings.threads > available_cores():
        advice = "CREDENCE_THREADS no larger than the cores: more wait for each other"
        return Finding(State.WARNING, found, advice)
    return Finding(State.GOOD, found)


def device(settings: Settings) -> Finding:
    """That it is there: raises otherwise."""
    return Finding(State.GOOD, f"{service_device(settings)} (CREDENCE_DEVICE={settings.device})")


def broker(settings: Settings) -> Finding:
    """That it answers: raises otherwise."""
    queue = Queue(settings)
    try:
        queue.check()
    finally:
        queue.close()
    return Finding(State.GOOD, f"{settings.resolved_broker_url.partition(':')[0]} answers")


def store(settings: Settings) -> Finding:
    """That it takes an artifact, gives it back as it was, and forgets it."""
    opened, key = open_store(settings), f"doctor-{secrets.token_hex(8)}"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe"
        source.write_bytes(PROBE)
        opened.put_file(key, source)
    try:
        if opened.local_path(key).read_bytes() != PROBE:
            return Finding(State.BROKEN, "gives back other bytes than it was given", "another disk")
    finally:
        with suppress(NotFound):
            opened.delete(key)
    where = settings.artifact_url if settings.bucket else settings.artifact_root
    return Finding(State.GOOD, f"{where}: written, read, deleted")
