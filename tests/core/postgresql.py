"""A PostgreSQL server of the tests' own, on a socket in a temporary directory."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class PostgresServer:
    """Can be stopped, at once and without a checkpoint, and started again with what it had."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._user = _unprivileged_user()
        if self._user is not None:
            os.chown(folder, self._user, -1)
        self._binaries = _find_binaries(folder)
        self._run("initdb", "--auth=trust", "--username=credence", "--no-sync", "--encoding=UTF8")

    @property
    def url(self) -> str:
        return f"postgresql://credence@/postgres?host={self.folder}"

    def start(self) -> None:
        options = f"-F -k {self.folder} -c listen_addresses=''"
        self._run("pg_ctl", "start", "--wait", "--options", options)

    def stop(self) -> None:
        self._run("pg_ctl", "stop", "--mode=immediate")

    def _run(self, command: str, *arguments: str) -> None:
        line = [str(self._binaries / command), "-D", str(self.folder / "data"), *arguments]
        log = self.folder / f"{command}.log"
        with log.open("a") as out:
            code = subprocess.call(line, user=self._user, cwd=self.folder, stdout=out, stderr=out)
        if code != 0:
            pytest.skip(f"PostgreSQL does not run here: {log.read_text()[-500:]}")


@contextmanager
def postgresql_server() -> Iterator[PostgresServer]:
    """A server that lives as long as the context; skips where there is none to run."""
    # not in pytest's own directory: the path of a socket may have no more than 107 characters
    with tempfile.TemporaryDirectory(prefix="credence-pg-", dir="/tmp") as name:
        server = PostgresServer(Path(name))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def running_postgresql() -> Iterator[str]:
    """The URL of such a server."""
    with postgresql_server() as server:
        yield server.url


def _unprivileged_user() -> int | None:
    """Whom to run the server as: itself it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    return names.get("postgres", names.get("nobody", 65534))


def _find_binaries(folder: Path) -> Path:
    """On the PATH, where Debian has them, or from the package pgserver."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    if debian := sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        return debian[-1].parent
    spec = importlib.util.find_spec("pgserver")
    if spec is None or spec.origin is None:
        pytest.skip("there is no initdb on the PATH, and no package pgserver")
    package = Path(spec.origin).parent
    for part in package.parent.glob("pgserver*"):  # its libraries are in a folder beside it
        if not part.name.endswith(".dist-info"):
            shutil.copytree(part, folder / part.name)  # the original's parents may be private
    return folder / "pgserver" / "pginstall" / "bin"
