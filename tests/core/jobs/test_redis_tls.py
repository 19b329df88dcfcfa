"""`rediss://`: a server that shows a certificate which nobody vouches for is not spoken to."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.exceptions import Unavailable
from core.jobs.queue import Queue
from core.settings import load_settings
from tests.ports import free_port, wait_for_port


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server's URL, and the certificate that it has signed itself."""
    server = shutil.which("redis-server")
    if not server or not shutil.which("openssl"):
        pytest.skip("no redis-server or no openssl on the PATH")
    folder, port = tmp_path_factory.mktemp("tls"), free_port()
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    line = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key)]
    subprocess.run(
        [*line.split(), *names, "-out", str(certificate)], check=True, capture_output=True
    )
    options = f"--port 0 --tls-port {port} --bind 127.0.0.1 --tls-auth-clients no --dir {folder}"
    files = ["--tls-cert-file", str(certificate), "--tls-key-file", str(key), "--save", ""]
    process = subprocess.Popen([server, *options.split(), *files], stdout=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        yield f"rediss://localhost:{port}/0", certificate
    finally:
        process.terminate()
        process.wait()


def _check(tmp_path: Path, url: str) -> None:
    queue = Queue(load_settings(data_dir=tmp_path, broker_url=url))
    try:
        queue.check()
    finally:
        queue.close()


def test_an_unknown_certificate_is_refused(tls: tuple[str, Path], tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="the broker does not answer"):
        _check(tmp_path, tls[0])


def test_one_that_is_vouched_for_is_accepted(tls: tuple[str, Path], tmp_path: Path) -> None:
    url, certificate = tls
    _check(tmp_path, f"{url}?ssl_cert_reqs=required&ssl_ca_certs={certificate}")
