"""Which `Content-Type` a file's name stands for."""

from pathlib import Path

MEDIA_TYPES = {
    ".csv": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".arrow": "application/vnd.apache.arrow.stream",
    ".arrows": "application/vnd.apache.arrow.stream",
    ".npz": "application/x-npz",
    ".txt": "text/plain",
}


def headers_for(path: Path) -> dict[str, str]:
    """The headers of an upload of this file; `.gz` after a known suffix is a content encoding.

    Raises:
        ValueError: if the suffix is none of those that the service reads.
    """
    gzipped = path.suffix == ".gz"
    suffix = Path(path.stem).suffix if gzipped else path.suffix
    if suffix not in MEDIA_TYPES:
        known = ", ".join(MEDIA_TYPES)
        raise ValueError(f"{path.name}: suffix {suffix!r} is not one of {known} (or these .gz)")
    headers = {"Content-Type": MEDIA_TYPES[suffix]}
    return headers | {"Content-Encoding": "gzip"} if gzipped else headers
