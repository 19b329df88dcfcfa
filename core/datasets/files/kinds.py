"""What a file is, by its first bytes, and in a zip archive by its members."""

import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from core.datasets.files.archives import BROKEN, data_members, opened_zip
from core.exceptions import NotParseable, UnsupportedFormat

HEAD_BYTES = 2**16
PACKINGS = ("gzip", "zstd", "bz2", "zip")
ODS = b"application/vnd.oasis.opendocument.spreadsheet"

UPLOAD = "read it in Python and upload the frame: credence.Client().upload(frame, name)"
EXTRACT = "upload the table in it as CSV, or as a frame: credence.Client().upload(frame, name)"
UNPACK = "upload the file in it as it is, or packed with gzip, zstd, bz2 or zip"


@dataclass(frozen=True)
class _Magic:
    """Bytes at one place of a file, and what the file then is."""

    start: bytes
    kind: str
    at: int = 0


READ = (
    _Magic(b"PAR1", "parquet"),
    _Magic(b"ARROW1", "feather"),
    _Magic(b"FEA1", "feather"),
    _Magic(b"\xff\xff\xff\xff", "arrow"),
    _Magic(b"ORC", "orc"),
    _Magic(b"\x93NUMPY", "npz"),
    _Magic(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "excel"),
    _Magic(b"\x09\x08\x10\x00\x00\x06\x05\x00", "excel"),  # BIFF8 without its container
    _Magic(b"\x1f\x8b", "gzip"),
    _Magic(b"\x28\xb5\x2f\xfd", "zstd"),
    *(_Magic(b"BZh%d1AY&SY" % level, "bz2") for level in range(1, 10)),
    _Magic(b"PK\x03\x04", "zip"),
    _Magic(b"PK\x05\x06", "zip"),
)


@dataclass(frozen=True)
class _Hopeless:
    """A kind of file that is never read, and what to do instead."""

    starts: tuple[bytes, ...]
    what: str
    advice: str
    at: int = 0


HOPELESS = (
    _Hopeless((b"%PDF",), "a PDF document", EXTRACT),
    _Hopeless(
        (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*", b"RIFF"),
        "an image or a recording",
        "upload images as an npz file with one array of shape (rows, height, width)",
    ),
    _Hopeless((b"SQLite format 3\0",), "an SQLite database", UPLOAD),
    _Hopeless((b"DUCK",), "a DuckDB database", UPLOAD, at=8),
    _Hopeless((b"\x89HDF\r\n\x1a\n",), "an HDF5 file", UPLOAD),
    _Hopeless((b"CDF\x01", b"CDF\x02"), "a NetCDF file", UPLOAD),
    _Hopeless((b"MATLAB 5.0 MAT-file",), "a MATLAB file", UPLOAD),
    _Hopeless(
        (b"RDX2\n", b"RDX3\n", b"RDA2\n", b"RDA3\n", b"X\n\0\0\0"),
        "a file of R's save or saveRDS",
        "write it in R by arrow::write_parquet or write.csv",
    ),
    _Hopeless((b"$FL2", b"$FL3"), "an SPSS file", UPLOAD),
    _Hopeless(
        (
            b"<stata_dta>",
            b"\x71\x01\x01",
            b"\x71\x02\x01",
            b"\x72\x01\x01",
            b"\x72\x02\x01",
            b"\x73\x01\x01",
            b"\x73\x02\x01",
        ),
        "a Stata file",
        UPLOAD,
    ),
    _Hopeless((b"\0" * 12 + b"\xc2\xea\x81\x60", b"HEADER RECORD*******"), "a SAS file", UPLOAD),
    _Hopeless((b"Obj\x01",), "an Avro file", UPLOAD),
    _Hopeless(tuple(bytes([0x80, n]) for n in range(2, 6)), "a pickle", UPLOAD),
    _Hopeless((b"PARE",), "an encrypted Parquet file", "write it without encryption"),
    _Hopeless((b"7z\xbc\xaf\x27\x1c",), "a 7z archive", UNPACK),
    _Hopeless((b"Rar!",), "a RAR archive", UNPACK),
    _Hopeless((b"\xfd7zXZ\0",), "an xz file", UNPACK),
    _Hopeless((b"\x04\x22\x4d\x18",), "an LZ4 file", UNPACK),
    _Hopeless((b"ustar",), "a tar archive", UNPACK, at=257),
    _Hopeless((b"\x7fELF", b"MZ\x90"), "a program", UPLOAD),
)

_HTML = re.compile(
    rb"\s*(<!--.*?-->\s*)?<(!doctype html|html|head|body|table|meta|script)\b",
    re.IGNORECASE | re.DOTALL,
)
# Files of anybody are matched: `++` and `*+` try each place once, so the time is linear.
_XML = re.compile(rb"\s*+(?:<\?xml\b|<\w++[^<>]*+>\s*+<\w)", re.IGNORECASE)
_SQL = re.compile(
    rb"(?:\s|--[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/;?)*+"
    rb"(?:insert|create|drop|set|begin|start|use|lock|delete|truncate|alter|select)\s",
    re.IGNORECASE | re.DOTALL,
)
_SQL_ROWS = re.compile(
    rb"^[^\S\n]*+(?:insert\s+(?:ignore\s+)?into\s.{1,2000}?\bvalues\b|copy\s[^\n]*\bfrom stdin;)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_ARFF = re.compile(rb"(?:\s|%[^\n]*+\n)*+@relation\b", re.IGNORECASE)
_OBJECT = re.compile(rb"\s*\{\s*(\"|\}|'[^']*'\s*:)")
_ARRAY = re.compile(rb"\s*\[\s*([\[{\]]|$)")
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")  # of byte order: the file is text
_CONTROL = bytes(set(range(32)) - set(b"\0\t\n\v\f\r\x1a\x1b"))


def kind_of_bytes(path: Path) -> str | None:
    """The format or packing that the first bytes tell; None if they may be text, or nothing known.

    Raises:
        UnsupportedFormat: a kind that is never read; the message says what to do instead.
        NotParseable: a zip archive that is damaged.
    """
    head = read_head(path)
    found = next((m.kind for m in READ if _starts(head, m.start, m.at)), None)
    if found == "zip":
        return _kind_of_zip(path)
    if found is None:
        _check_hopeless(head)
    return found


def begins_json(path: Path) -> bool:
    """Whether the first character is one that begins records or columns of JSON."""
    return read_head(path).removeprefix(_MARKS[0]).replace(b"\0", b"").strip()[:1] in (b"[", b"{")


def kind_of_text(path: Path) -> str | None:
    """What a text file is: `records`, `jsonl` or `csv`; None if it is not text.

    Raises:
        UnsupportedFormat: HTML, XML, a dump in SQL or ARFF.
    """
    head = read_head(path)
    if not is_text(head):
        return None
    text = head.removeprefix(_MARKS[0])
    if head.startswith(_MARKS[1:]):
        text = text.replace(b"\0", b"")[2:]  # enough of UTF-16 for what follows
    if _HTML.match(text):
        raise _refusal(
            "an HTML page",
            "upload its table as CSV, or as a frame: "
            "credence.Client().upload(pandas.read_html(page)[0], name)",
        )
    if _XML.match(text):
        raise _refusal("an XML document", EXTRACT)
    if _SQL.match(text) and _SQL_ROWS.search(text):
        raise _refusal(
            "a dump in SQL",
            "load it into its database and upload the table as a frame: "
            "credence.Client().upload(pandas.read_sql(query, connection), name)",
        )
    if _ARFF.match(text):
        raise _refusal("a file of Weka (ARFF)", UPLOAD)
    if _ARRAY.match(text):
        return "records"
    if _OBJECT.match(text):
        return "jsonl" if _is_json_lines(text) else "records"
    return "csv"


def is_text(head: bytes) -> bool:
    """Whether the first bytes may be text in some encoding, UTF-16 and UTF-32 included."""
    if head.startswith(_MARKS):
        return True
    controls = len(head) - len(head.translate(None, _CONTROL))
    zeros = head.count(0)
    return controls <= len(head) // 100 and (zeros <= len(head) // 100 or zeros > len(head) // 5)


def read_head(path: Path) -> bytes:
    """The first bytes, enough to know what a file is."""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _starts(head: bytes, start: bytes, at: int) -> bool:
    """Whether the head has these bytes there; "ORC" may also begin the header of a CSV file."""
    return head.startswith(start, at) and (not _is_word(start) or b"\0" in head)


def _is_word(start: bytes) -> bool:
    return start.isalnum() and not start.startswith(b"BZh")


def _check_hopeless(head: bytes) -> None:
    for one in HOPELESS:
        if any(_starts(head, start, one.at) for start in one.starts):
            raise _refusal(one.what, one.advice)


def _refusal(what: str, advice: str) -> UnsupportedFormat:
    return UnsupportedFormat(f"the file is {what}, which is not read: {advice}")


def _kind_of_zip(path: Path) -> str:
    """A workbook, arrays, or an archive, by the members."""
    try:
        with opened_zip(path) as archive:
            names = {m.filename for m in archive.infolist()}
            files = [m.filename for m in data_members(archive)]
            mimetype = archive.read("mimetype")[:100] if _is_small(archive, "mimetype") else b""
    except BROKEN as error:
        raise NotParseable(
            "the file is a zip archive that is damaged, or ends too early"
        ) from error
    if "xl/workbook.xml" in names or "xl/workbook.bin" in names:
        return "excel"
    if mimetype.startswith(ODS):
        return "opendocument"
    if mimetype.startswith(b"application/vnd.oasis") or "word/document.xml" in names:
        raise _refusal("a text document or presentation", EXTRACT)
    if "ppt/presentation.xml" in names:
        raise _refusal("a presentation", EXTRACT)
    if any(name.endswith(".iwa") for name in names):
        raise _refusal("a document of Apple's Numbers or Pages", EXTRACT)
    if any(name.endswith("data.pkl") for name in names):
        raise _refusal("a file of PyTorch", UPLOAD)
    if files and all(name.endswith(".npy") for name in files):
        return "npz"
    return "zip"


def _is_small(archive: zipfile.ZipFile, name: str) -> bool:
    try:
        member = archive.getinfo(name)
    except KeyError:
        return False
    return member.file_size < HEAD_BYTES and member.compress_type == zipfile.ZIP_STORED


def _is_json_lines(head: bytes) -> bool:
    first, _, rest = head.lstrip().partition(b"\n")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return rest.lstrip().startswith(b"{")
