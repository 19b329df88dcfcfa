"""Compressed files and archives."""

import bz2
import gzip
import io
import zipfile
from collections.abc import Mapping

import pyarrow as pa
from pyarrow import orc

from tests.corpus.case import PLAIN_TYPES, PLAIN_VALUES, Case, plain, text
from tests.corpus.cases.typed import TABLE, written
from tests.corpus.workbooks import MOMENT, xlsx

AS_PLAIN = {"rows": 16, "types": PLAIN_TYPES, "values": PLAIN_VALUES}
CSV = text(plain(";"))


def zstd() -> bytes:
    """A frame of zstd."""
    return pa.compress(CSV(), "zstd", asbytes=True)


def archive(files: Mapping[str, bytes]) -> bytes:
    """A zip archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in files.items():
            new.writestr(zipfile.ZipInfo(name, MOMENT), content)
    return file.getvalue()


CASES = (
    Case(
        file="packed.csv.gz",
        content=lambda: gzip.compress(CSV(), mtime=0),
        reading={"packing": "gzip", "delimiter": ";"},
        **AS_PLAIN,
    ),
    Case(file="packed.csv.zst", content=zstd, reading={"packing": "zstd"}, **AS_PLAIN),
    Case(
        file="packed.csv.bz2",
        content=lambda: bz2.compress(CSV()),
        reading={"packing": "bz2"},
        **AS_PLAIN,
    ),
    Case(
        file="packed.zip",
        content=lambda: archive({"folder/data.csv": CSV()}),
        reading={"packing": "zip", "member": "folder/data.csv"},
        **AS_PLAIN,
    ),
    Case(
        file="packed_on_a_mac.zip",
        content=lambda: archive({"data.csv": CSV(), "__MACOSX/._data.csv": b"\0\5\x16\7"}),
        reading={"packing": "zip", "member": "data.csv"},
        **AS_PLAIN,
    ),
    Case(
        file="two_files.zip",
        content=lambda: archive({"north.csv": CSV(), "south.csv": CSV()}),
        refused=r"north\.csv.*south\.csv",
    ),
    Case(file="gzip_named.csv", content=lambda: gzip.compress(CSV(), mtime=0), **AS_PLAIN),
    Case(
        file="workbook_in.zip",
        content=lambda: archive({"data.xlsx": xlsx({"Data": [list(PLAIN_TYPES)]})()}),
        refused=r"no rows|at least one",
    ),
    Case(
        file="gzip_cut_short.csv.gz",
        content=lambda: gzip.compress(CSV(), mtime=0)[:-12],
        refused=r"gzip",
    ),
    Case(
        file="gzip_of_orc.gz",
        content=lambda: gzip.compress(written(orc.write_table, TABLE)(), mtime=0),
        **AS_PLAIN,
    ),
)
