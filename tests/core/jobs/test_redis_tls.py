"""`rediss://`: a server that shows a certificate which nobody vouches for is not spoken to."""

import shutil
import subprocess
from pathlib import Path

import pytest

from core.exceptions import Unavailable
from core.jobs.queue import Queue
from core.settings import load_settings
from tests.core.sources.certificates import certificate
from tests.ports import free_port, wait_for_port

pytestmark = pytest.mark.stack


def check(tmp_path: Path, url: str) -> None:
    queue = Queue(load_settings(data_dir=tmp_path, broker_url=url))
    try:
        queue.check()
    finally:
        queue.close()


def test_only_a_certificate_that_is_vouched_for_is_accepted(tmp_path: Path) -> None:
    server = shutil.which("redis-server")
    if not server:
        pytest.skip("no redis-server on the PATH")
    port, (public, key) = free_port(), certificate(tmp_path)
    options = f"--port 0 --tls-port {port} --bind 127.0.0.1 --tls-auth-clients no --save".split()
    files = ["", "--dir", tmp_path, "--tls-cert-file", public, "--tls-key-file", key]
    process = subprocess.Popen([server, *options, *files], stdout=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        url = f"rediss://localhost:{port}/0"
        with pytest.raises(Unavailable):
            check(tmp_path, url)
        check(tmp_path, f"{url}?ssl_cert_reqs=required&ssl_ca_certs={public}")
    finally:
        process.terminate()
        process.wait()
