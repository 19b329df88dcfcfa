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


@contextmanager
def running_postgresql() -> Iterator[str]:
    """The URL of a server that lives as long as the context; skips where there is none to run."""
    # not in pytest's own directory: the path of a socket may have no more than 107 characters
    with tempfile.TemporaryDirectory(prefix="credence-pg-", dir="/tmp") as name:
        folder = Path(name)
        user = _unprivileged_user()
        if user is not None:
            os.chown(folder, user, -1)
        binaries = _find_binaries(folder)
        data = folder / "data"

        def run(command: str, *arguments: str) -> None:
            line = [str(binaries / command), "-D", str(data), *arguments]
            log = folder / f"{command}.log"
            with log.open("a") as output:
                code = subprocess.call(line, user=user, cwd=folder, stdout=output, stderr=output)
            if code != 0:
                pytest.skip(f"PostgreSQL does not run here: {log.read_text()[-500:]}")

        run("initdb", "--auth=trust", "--username=credence", "--no-sync", "--encoding=UTF8")
        run("pg_ctl", "start", "--wait", "--options", f"-F -k {folder} -c listen_addresses=''")
        try:
            yield f"postgresql://credence@/postgres?host={folder}"
        finally:
            run("pg_ctl", "stop", "--mode=immediate")


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
