"""The headers of a file by its suffix; the service finds out what any other file is."""

from collections.abc import Mapping
from pathlib import Path

PACKINGS = (".zst", ".bz2", ".zip")
UNKNOWN = "application/octet-stream"
MEDIA_TYPES: Mapping[str, str] = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".tab": "text/tab-separated-values",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".ndjson": "application/x-ndjson",
    ".txt": "text/plain",
    ".parquet": "application/vnd.apache.parquet",
    ".arrow": "application/vnd.apache.arrow.stream",
    ".arrows": "application/vnd.apache.arrow.stream",
    ".feather": "application/vnd.apache.arrow.file",
    ".npz": "application/x-npz",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".xls": "application/vnd.ms-excel",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
}


def headers_for(path: Path) -> dict[str, str]:
    """The headers of an upload of this file; `.gz` after a known suffix is a content encoding."""
    match [suffix.lower() for suffix in path.suffixes]:
        case [*_, suffix, ".gz"] if suffix in MEDIA_TYPES:
            return {"Content-Type": MEDIA_TYPES[suffix], "Content-Encoding": "gzip"}
        case [*_, suffix, packing] if packing in PACKINGS and suffix in MEDIA_TYPES:
            return {"Content-Type": MEDIA_TYPES[suffix]}
        case [*_, suffix]:
            return {"Content-Type": MEDIA_TYPES.get(suffix, UNKNOWN)}
    return {"Content-Type": UNKNOWN}
