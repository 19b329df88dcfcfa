"""Packed files: what was packed comes back; lies, bombs and secrets are refused."""

import bz2
import gzip
import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from core.datasets.files.opening import opened
from core.datasets.files.unpacking import unpacked
from core.exceptions import CredenceError, NotParseable, TooLarge, UnsupportedFormat
from tests.fuzz.bombs import zipped

CSV = b"a,b\n" + b"".join(b"%d,x\n" % i for i in range(5000))
LIMIT = 2**20


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def put(folder: Path, content: bytes) -> Path:
    path = folder / "upload"
    path.write_bytes(content)
    return path


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "zstd": zstd,
    "zip": lambda data: zipped(("t.csv", data)),
}


@pytest.mark.parametrize("packing", ["gzip", "bz2", "zstd"])
def test_files_of_several_members_are_read_whole(tmp_path: Path, packing: str) -> None:
    half = len(CSV) // 2
    path = put(tmp_path, PACK[packing](CSV[:half]) + PACK[packing](CSV[half:]))
    with unpacked(path, LIMIT) as file:
        assert file.path.read_bytes() == CSV


def test_a_packed_file_in_an_archive_is_unpacked_too(tmp_path: Path) -> None:
    path = put(tmp_path, zipped(("data/t.csv.gz", gzip.compress(CSV))))
    with unpacked(path, LIMIT) as file:
        assert file.path.read_bytes() == CSV
    assert (file.packing, file.member) == ("zip, gzip", "data/t.csv.gz")
    path = put(tmp_path, gzip.compress(bz2.compress(gzip.compress(CSV))))
    with pytest.raises(NotParseable, match="more than twice"), unpacked(path, LIMIT):
        pass


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            zipped(("a.csv", CSV), ("b.csv", CSV)),
            r"holds 2 files \('a.csv', 'b.csv'\).*upload each",
        ),
        (gzip.compress(CSV)[:-20], "gzip file is damaged, or ends too early"),
        (gzip.compress(CSV) + b"junk", "gzip file is damaged"),
        (zstd(CSV)[:-20], "zstd file is damaged"),
        (zipped(("a.csv", CSV))[:-20], "zip archive that is damaged"),
    ],
)
def test_unreadable_archives_say_why(tmp_path: Path, content: bytes, message: str) -> None:
    path = put(tmp_path, content)
    with pytest.raises(NotParseable, match=message), unpacked(path, LIMIT):
        pass


def test_an_encrypted_member_is_refused_in_words(tmp_path: Path) -> None:
    content = bytearray(zipped(("a.csv", CSV)))
    for header in (b"PK\3\4", b"PK\1\2"):
        at = content.index(header) + (6 if header == b"PK\3\4" else 8)
        content[at] |= 1
    path = put(tmp_path, bytes(content))
    with pytest.raises(NotParseable, match=r"'a.csv' .* is encrypted"), unpacked(path, LIMIT):
        pass


@pytest.mark.parametrize("packing", PACK)
def test_bombs_stop_at_the_limit(tmp_path: Path, packing: str) -> None:
    """16 MB of zeros in a few kilobytes: at most the limit is written, in small pieces."""
    path = put(tmp_path, PACK[packing](bytes(2**24)))
    assert path.stat().st_size < 2**17
    tracemalloc.start()
    with pytest.raises(TooLarge, match="unpacks to more than 1048576 bytes"), unpacked(path, LIMIT):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**23


def test_a_member_that_understates_its_size_is_refused(tmp_path: Path) -> None:
    content = bytearray(zipped(("a.csv", CSV)))
    for header, at in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        start = content.index(header) + at
        content[start : start + 4] = (10).to_bytes(4, "little")
    path = put(tmp_path, bytes(content))
    with pytest.raises(CredenceError), unpacked(path, LIMIT):
        pass


MOST = 2**24


def test_text_stays_text_although_it_looks_like_a_table(tmp_path: Path) -> None:
    with opened(put(tmp_path, b"a,b\n1,2\n"), "text/plain; charset=utf-8", MOST) as file:
        assert file.format.name == "text"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "an image"),
        (pickle.dumps({"a": [1]}), "a pickle"),
        (b"\x89HDF\r\n\x1a\n\0\0", "an HDF5 file"),
        (b"RDX3\nX\n\0\0\0\3", "a file of R"),
        (b"SQLite format 3\0" + bytes(84), "an SQLite"),
        (b"\n<!DOCTYPE html>\n<html><body><table>", "an HTML page"),
        (b'<?xml version="1.0"?><rows><row a="1"/></rows>', "an XML document"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_never_read_says_how_to_go_on(tmp_path: Path, content: bytes, what: str) -> None:
    path = put(tmp_path, content)
    with (
        pytest.raises(UnsupportedFormat, match=f"the file is {what}"),
        opened(path, "text/csv", MOST),
    ):
        pass
