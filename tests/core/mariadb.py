"""A MariaDB server of the tests' own, without accounts, on a port of this machine."""

import getpass
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port, wait_for_port

NAMES = ("mariadbd", "mysqld")
PLACES = (Path("/usr/sbin"), Path("/usr/libexec"))


@contextmanager
def running_mariadb() -> Iterator[int]:
    """Its port; skips where there is no server to run."""
    found = [shutil.which(name) for name in NAMES]
    found += [str(place / name) for place in PLACES for name in NAMES if (place / name).exists()]
    server = next((path for path in found if path), None)
    if server is None:
        pytest.skip("there is no mariadbd: Debian's package mariadb-server-core has it")
    messages = Path(server).resolve().parents[1] / "share" / "mysql"
    with tempfile.TemporaryDirectory(prefix="credence-maria-", dir="/tmp") as folder:
        line = [
            server, "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={folder}",
            f"--lc-messages-dir={messages}", f"--character-sets-dir={messages / 'charsets'}",
            "--innodb-buffer-pool-size=16M", "--skip-grant-tables",
        ]  # fmt: skip
        log = Path(folder) / "log"
        with log.open("w") as out:
            code = subprocess.call([*line, "--bootstrap"], stdin=subprocess.DEVNULL, stderr=out)
            if code != 0:
                pytest.skip(f"MariaDB does not run here: {log.read_text()[-500:]}")
            port = free_port()
            where = [f"--port={port}", "--bind-address=127.0.0.1", f"--socket={folder}/socket"]
            process = subprocess.Popen([*line, *where], stdout=out, stderr=out)
        try:
            wait_for_port(port)
            yield port
        finally:
            process.terminate()
            process.wait()
