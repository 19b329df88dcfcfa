"""Versions between installations: a copy predicts the same, what is hostile is refused."""

import gzip
import hashlib
import io
import json
import shutil
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from safetensors.torch import load, save

from app.examination import CHILD_BYTES, USE, examined, work
from core.exceptions import Invalid, TooLarge
from core.process.memory_budget import MemoryBudget
from core.registry import archives
from core.registry.archives import MOST_FILES
from tests.app.conftest import MakeService
from tests.app.running import Service, answered
from tests.attacks import artifacts

TAR = {"Content-Type": "application/x-tar"}
ROWS = {"inputs": [[1.0, "oak", True, None], [None, "fir", False, "2026-01-05T00:00:00Z"]]}
Files = dict[str, bytes]


@pytest.fixture(scope="module")
def archive(service: Service) -> bytes:
    return exported(service, "price")


def exported(service: Service, model: str) -> bytes:
    answer = answered(service.http.get(f"/models/{model}/versions/1/archive"))
    assert answer.headers["Content-Type"] == "application/x-tar"
    return answer.content


def send(service: Service, data: bytes, name: str = "copy", **options: Any) -> httpx.Response:
    headers = TAR | options.pop("headers", {})
    options = {"timeout": 280} | options  # a child examines it, for seconds of the processor
    return service.http.post(f"/models/{name}/versions", content=data, headers=headers, **options)


def unpacked(data: bytes) -> Files:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def packed(files: Files, format: int = tarfile.USTAR_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def with_sums(files: Files) -> bytes:
    """As whoever changes files would: with the sums of what they changed."""
    sums = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in files.items()
        if name not in ("manifest.json", "origin.json")
    }
    manifest = json.dumps({"format": 1, "files": sums}).encode()
    return packed(files | {"manifest.json": manifest})


def test_an_import_predicts_the_same(service: Service, archive: bytes, own: Service) -> None:
    made = answered(send(own, archive, params={"alias": "champion"}), 201)
    assert made.headers["Location"] == "/models/copy/versions/1"
    version, origin = made.json(), service.http.get("/models/price/versions/1").json()
    assert version["aliases"] == ["champion"]
    assert (version["job"], version["dataset"]) == (origin["job"], origin["dataset"])
    assert version["imported"]["origin"]["model"] == "price"
    assert version["metrics"] == origin["metrics"]
    for prune in (0.0, 0.5):
        asked = ROWS | {"prune": prune, "samples": 20, "seed": 3}
        ours = service.post("/predict", asked | {"model": "price"}).json()
        theirs = own.post("/predict", asked | {"model": "copy", "version": "champion"}).json()
        assert theirs["mean"] == ours["mean"]
        assert theirs["variance"] == ours["variance"]
    assert own.http.get("/models/copy/versions/1/card").status_code == 200


def flipped(files: Files) -> Files:
    weights = bytearray(files["prune-0.safetensors"])
    weights[-1] ^= 1
    return files | {"prune-0.safetensors": bytes(weights)}


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[Files], bytes]:
    """`model.json` after a change in place, with its sum."""

    def build(files: Files) -> bytes:
        document = json.loads(files["model.json"])
        change(document)
        return with_sums(files | {"model.json": json.dumps(document).encode()})

    return build


def tensors(change: Callable[[dict[str, Any]], object]) -> Callable[[Files], bytes]:
    """The full posterior's tensors after a change in place, with their sum."""

    def build(files: Files) -> bytes:
        state = load(files["prune-0.safetensors"])
        change(state)
        return with_sums(files | {"prune-0.safetensors": save(state)})

    return build


def header_bomb(files: Files) -> bytes:
    bomb = struct.pack("<Q", 2**20) + b" " * 2**20
    return with_sums(files | {"prune-0.safetensors": bomb})


def link(files: Files) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member = tarfile.TarInfo("model.json")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member)
    return buffer.getvalue()


def card(change: Callable[[dict[str, Any]], object]) -> Callable[[Files], bytes]:
    def build(files: Files) -> bytes:
        document = json.loads(files["card.json"])
        change(document)
        return with_sums(files | {"card.json": json.dumps(document).encode()})

    return build


def put(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: Any) -> None:
        for part in path[:-1]:
            document = document[part]
        document[path[-1]] = value

    return change


HOSTILE: dict[str, tuple[Callable[[Files], bytes], str]] = {
    "another sum": (lambda f: packed(flipped(f)), "/prune-0.safetensors"),
    "no model": (lambda f: packed({"manifest.json": b'{"format": 1, "files": {}}'}), "/manifest"),
    "a path": (lambda f: packed({"../model.json": b"{}"}), "/../model.json"),
    "another file": (lambda f: packed(f | {"run.py": b""}), "/run.py"),
    "one that the manifest lacks": (
        lambda f: packed(f | {"prune-0.25.safetensors": b""}),
        "/prune-0.25.safetensors",
    ),
    "a link": (link, "/model.json"),
    "a header bomb": (header_bomb, "/model.json"),
    "wider": (changed(put("config", "network", "hidden", 0, value=16_384)), "/model.json"),
    "a scale of zero": (changed(put("target", "std", value=0.0)), "/model.json/target/number/std"),
    "a NaN": (changed(put("target", "mean", value=float("nan"))), "/model.json"),
    "a NUL": (changed(put("notes", value=["a\0b"])), "/model.json/notes/0"),
    "an unknown field": (changed(put("config", "colour", value="red")), "/model.json/config"),
    "fewer weights": (tensors(lambda t: t.update(loc=t["loc"][:-1].clone())), "/model.json"),
    "weights that are not finite": (
        tensors(lambda t: t["rho"].fill_(float("nan"))),
        "/model.json",
    ),
    "a tensor less": (tensors(lambda t: t.pop("rho")), "/model.json"),
    "a card that is none": (card(put("rows", value={"learned": "many"})), "/card.json"),
    "a deep card": (
        lambda f: with_sums(f | {"card.json": b'{"rows": ' + b"[" * 90_000 + b"]" * 90_000 + b"}"}),
        "/",
    ),
    "a card of many lists": (
        lambda f: with_sums(f | {"card.json": b"[" + b"[]," * 1_000_000 + b"[]]"}),
        "/card.json",
    ),
    "an origin that is none": (
        lambda f: packed(f | {"origin.json": b'{"model": "../x"}'}),
        "/origin.json",
    ),
}


def refusal(data: bytes, folder: Path) -> tuple[str, str]:
    """Place and message. What the service's child does, called here: a child takes seconds."""
    sent, directory = folder / "sent.tar", folder / "artifact"
    sent.write_bytes(data)

    def examine() -> None:
        archives.unpack(sent, directory, 2**30)
        work(io.BytesIO(), str(directory), "hostile")

    with pytest.raises(Invalid) as refused:
        examine()
    [(path, message)] = refused.value.errors
    return path, message


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_archive_names_what_is_wrong(archive: bytes, tmp_path: Path, what: str) -> None:
    build, place = HOSTILE[what]
    path, message = refusal(build(unpacked(archive)), tmp_path)
    assert path.startswith(place), (path, message)
    assert str(tmp_path) not in message


@pytest.mark.parametrize("what", ["a path", "a card that is none"])
def test_a_hostile_archive_is_a_422(service: Service, archive: bytes, what: str) -> None:
    """Refused by its headers; by the child that renders it."""
    build, place = HOSTILE[what]
    answer = answered(send(service, build(unpacked(archive)), "hostile"), 422)
    [error] = answer.json()["errors"]
    assert error["path"].startswith(place), error
    assert "/tmp" not in answer.text
    assert service.http.get("/models/hostile").status_code == 404
    assert "hostile" not in service.context.store.children("models")
    assert not list(service.context.scratch.path.glob("import-*"))


def test_many_empty_files_are_too_many(archive: bytes, tmp_path: Path) -> None:
    """Each would take a file of the disk, and none a byte of what may be sent."""
    names = [f"prune-0.{i}.safetensors" for i in range(MOST_FILES + 1)]
    sent = tmp_path / "sent.tar"
    sent.write_bytes(packed(dict.fromkeys(names, b"")))
    with pytest.raises(TooLarge, match=f"more than {MOST_FILES} files"):
        archives.unpack(sent, tmp_path / "artifact", 2**30)


def test_what_is_no_archive_is_a_400(service: Service, archive: bytes) -> None:
    for what, data in {
        "empty": b"",
        "no tar": b"not a tar" * 100,
        "cut": archive[:-5000],
        "gzip cut": gzip.compress(archive)[:-9],
        "more after it": archive + b"more",
        "its header": archive[:100] + b"\xff" + archive[101:],
    }.items():
        assert send(service, data, "hostile").status_code == 400, what


def test_a_bomb_is_too_large(make_service: MakeService, archive: bytes) -> None:
    small = make_service(max_body_bytes=2**20)
    bomb = packed({"prune-0.safetensors": bytes(2**22)})
    for body in (bomb, gzip.compress(bomb)):
        assert send(small, body).status_code == 413


def test_wrong_names_and_types_are_refused_before_the_body(service: Service) -> None:
    assert send(service, b"", "UPPER").status_code == 422
    assert send(service, b"", params={"alias": "7"}).status_code == 422
    assert send(service, b"", headers={"Content-Type": "text/csv"}).status_code == 415
    assert service.http.get("/models/price/versions/9/archive").status_code == 404


def test_an_archive_is_whole_though_the_version_is_deleted_meanwhile(tmp_path: Path) -> None:
    """Status 200 had been sent, and a file was gone: a client got half of an archive."""
    directory = tmp_path / "artifact"
    directory.mkdir()
    contents = {"a.json": b"{}", "b.safetensors": bytes(1000), "c.json": b"[]"}
    for name, content in contents.items():
        (directory / name).write_bytes(content)
    expected = b"".join(archives.pack(directory))
    pieces = archives.pack(directory)
    shutil.rmtree(directory)
    assert b"".join(pieces) == expected
    with tarfile.open(fileobj=io.BytesIO(expected)) as tar:
        assert {m.name: tar.extractfile(m).read() for m in tar} == contents  # type: ignore[union-attr]
    with pytest.raises(FileNotFoundError):
        archives.pack(directory)


GIBIBYTE = 2**30
LITTLE = (CHILD_BYTES + 2**20) * 4 // 3  # a megabyte besides what the child holds


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return received(tmp_path, artifacts.files())


def received(folder: Path, files: dict[str, bytes]) -> Path:
    sent, directory = folder / "sent.tar", folder / "artifact"
    sent.write_bytes(artifacts.packed(files))
    archives.unpack(sent, directory, GIBIBYTE)
    return directory


@pytest.mark.stack
def test_the_child_reads_and_not_this_process(directory: Path) -> None:
    """Every error of the reader is one of the archive."""
    (directory / "prune-0.safetensors").write_bytes(b"x")
    with pytest.raises(Invalid, match=r"prune-0\.safetensors"):
        examined(directory, "line", MemoryBudget(4 * GIBIBYTE), "anna")


@pytest.mark.stack
def test_what_takes_more_memory_than_there_is_is_refused(tmp_path: Path) -> None:
    large = artifacts.with_card_member(b'"' + b"x" * 3 * 2**20 + b'"')
    directory, memory = received(tmp_path, large), MemoryBudget(LITTLE)
    with pytest.raises(TooLarge, match="CREDENCE_MEMORY_BYTES"):
        examined(directory, "line", memory, "anna")
    assert memory.reserved() == {USE: 0}
