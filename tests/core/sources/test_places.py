"""Folders, buckets and hosts give copies, and refuse by name what leads out of them."""

import http.server
import os
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from core.exceptions import Invalid, TooLarge, Unavailable
from core.sources.budget import Budget
from core.sources.places.addresses import check_addresses
from core.sources.places.bucket import Bucket
from core.sources.places.folder import Folder
from core.sources.places.place import File
from core.sources.places.web import Web
from core.sources.secrets import HttpsSecret, S3Secret
from core.sources.uris import parse
from tests.core.s3 import KEY, SECRET, running_moto
from tests.core.sources.certificates import certificate


def budget(max_bytes: int = 10**6) -> Budget:
    return Budget(max_bytes, 600)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = tmp_path / "data" / "year=2024"
    inner.mkdir(parents=True)
    (inner / "a.csv").write_text("x\n1\n")
    (tmp_path / "secret.txt").write_text("top")
    return tmp_path / "data"


def test_a_folder_lists_and_copies_plain_files(folder: Path, tmp_path: Path) -> None:
    place, below = Folder(parse(f"file://{folder}/")), f"{folder}/"[1:]
    (file,) = place.files(below, budget())
    assert (file.path, file.bytes) == (f"{below}year=2024/a.csv", 4)
    assert place.fetch(file, tmp_path / "copy", budget()) == file
    assert (tmp_path / "copy").read_text() == "x\n1\n"
    with pytest.raises(TooLarge, match="CREDENCE_MAX_DATASET_BYTES"):
        place.fetch(file, tmp_path / "more", budget(max_bytes=3))


@pytest.mark.parametrize("name", ["link.csv", "out/secret.txt", "pipe"])
def test_links_and_pipes_are_refused_by_name(folder: Path, tmp_path: Path, name: str) -> None:
    (folder / "link.csv").symlink_to(tmp_path / "secret.txt")
    (folder / "out").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(folder / "pipe")
    with pytest.raises(Invalid, match=name.partition("/")[0]):
        Folder(parse(f"file://{folder}/")).fetch(
            File(f"{folder}/{name}"[1:], None, None), tmp_path / "copy", budget()
        )
    assert not (tmp_path / "copy").exists() or not (tmp_path / "copy").read_bytes()


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0",
        "100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "fe80::1%eth0", "fd00:ec2::254",
        "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "198.18.0.1",
    ],
)  # fmt: skip
def test_private_addresses_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match="has the address"):
        check_addresses(["93.184.215.14", address])


def test_public_addresses_are_taken_and_an_operators_private_ones() -> None:
    assert check_addresses(["93.184.215.14", "2606:2800:21f::1"]) == "93.184.215.14"
    assert check_addresses(["127.0.0.1"], private=True) == "127.0.0.1"
    for metadata in ("169.254.169.254", "fd00:ec2::254", "::ffff:169.254.169.254"):
        with pytest.raises(ValueError, match="has the address"):
            check_addresses([metadata], private=True)


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/a%20b.csv":
            self._send(200, b"x\n1\n", ETag='"v1"')
        elif self.path == "/token":
            self._send(200, self.headers.get("Authorization", "none").encode())
        elif self.path == "/away":
            self._send(302, b"", Location="http://169.254.169.254/latest/meta-data")
        elif self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            self._write_until_cut(b"0" * 2**16, 0)
        elif self.path == "/drip":
            self.send_response(200)
            self.end_headers()
            self._write_until_cut(b"0", 0.05)
        else:
            self._send(404, b"")

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _write_until_cut(self, piece: bytes, pause: float) -> None:
        try:
            while True:
                self.wfile.write(piece)
                self.wfile.flush()
                time.sleep(pause)
        except OSError:
            return

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@contextmanager
def _serving(certificate: Path, key: Path) -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, HttpsSecret]]:
    """A host on this machine, and the operator's leave to connect to it."""
    public, key = certificate(tmp_path_factory.mktemp("host"))
    with _serving(public, key) as port:
        uris = [f"https://localhost:{port}/"]
        given = {"uris": uris, "ca_file": public, "private_address": True, "token": "sesame"}
        yield f"localhost:{port}", HttpsSecret.model_validate({"kind": "https", **given})


def fetch(host: tuple[str, HttpsSecret], path: str, to: Path, seconds: float = 600) -> File:
    return Web(*host).fetch(File(path, None, None), to, Budget(10**6, seconds))


def test_a_host_gives_a_file_and_its_tag(host: tuple[str, HttpsSecret], tmp_path: Path) -> None:
    found = fetch(host, "a b.csv", tmp_path / "f")
    assert (found.bytes, found.tag) == (4, "v1")
    assert (tmp_path / "f").read_text() == "x\n1\n"
    fetch(host, "token", tmp_path / "t")
    assert (tmp_path / "t").read_text() == "Bearer sesame"


def test_a_name_of_this_machine_is_refused(host: tuple[str, HttpsSecret], tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"https://localhost:\d+/token: the host has the address"):
        Web(host[0], None).fetch(File("token", None, None), tmp_path / "f", budget())


@pytest.mark.parametrize(
    ("path", "error", "reason"),
    [
        ("away", Invalid, r"redirects to 'http://169\.254\.169\.254"),
        ("none", Invalid, "none: does not exist"),
        ("endless", TooLarge, "CREDENCE_MAX_DATASET_BYTES"),
        ("drip", TooLarge, "CREDENCE_SOURCE_SECONDS"),
    ],
)
def test_what_a_host_may_not_answer(
    host: tuple[str, HttpsSecret], tmp_path: Path, path: str, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        fetch(host, path, tmp_path / "f", seconds=0.5 if path == "drip" else 600)


def test_a_certificate_of_nobody_is_refused(host: tuple[str, HttpsSecret], tmp_path: Path) -> None:
    trusting_others = host[1].model_copy(update={"ca_file": None})
    with pytest.raises(Invalid, match="certificate"):
        fetch((host[0], trusting_others), "token", tmp_path / "f")


@pytest.mark.stack
def test_a_bucket_gives_the_objects_that_it_listed(tmp_path: Path) -> None:
    with running_moto() as server:
        client = server.bucket._client
        client.create_bucket(Bucket="lake")
        for key in ("sales/a.csv", "sales/b/c.csv", "sales/b/", "other/x.csv"):
            client.put_object(Bucket="lake", Key=key, Body=key.encode())
        keys = {"access_key": SecretStr(KEY), "secret_key": SecretStr(SECRET)}
        bucket = Bucket("lake", S3Secret(kind="s3", endpoint=server.url, **keys))
        files = list(bucket.files("sales/", budget()))
        assert [file.path for file in files] == ["sales/a.csv", "sales/b/c.csv"]
        assert bucket.fetch(files[0], tmp_path / "f", budget()) == files[0]
        assert (tmp_path / "f").read_text() == "sales/a.csv"
        changed = File("sales/a.csv", 11, "0" * 32)
        with pytest.raises(Invalid, match=r"s3://lake/sales/a\.csv: does not exist, or changed"):
            bucket.fetch(changed, tmp_path / "f", budget())


def test_a_bucket_that_does_not_answer_shows_no_credential(tmp_path: Path) -> None:
    secret = S3Secret(
        kind="s3",
        access_key=SecretStr("visible?"),
        secret_key=SecretStr("sesame"),
        endpoint="http://127.0.0.1:9",
    )
    with pytest.raises(Unavailable) as refused:
        Bucket("lake", secret).fetch(File("a", None, None), tmp_path / "f", budget())
    assert "s3://lake/a" in str(refused.value)
    assert "visible?" not in str(refused.value)
    assert "sesame" not in repr(secret) + str(refused.value)
