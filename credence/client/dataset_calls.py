"""Data sets."""

import re
from pathlib import Path
from typing import Any

from credence.client.calls import Calls
from credence.client.operations import Listing, Operation, listing, method
from credence.client.requests import path
from credence.types import Dataset, Json

MEDIA_TYPES = {
    ".csv": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".arrow": "application/vnd.apache.arrow.stream",
    ".arrows": "application/vnd.apache.arrow.stream",
    ".npz": "application/x-npz",
    ".txt": "text/plain",
}


class DatasetCalls(Calls):
    """Upload, list, read and delete data sets."""

    @method
    def upload(self, data: Any, name: str | None = None) -> Operation[Dataset]:
        """Upload a file, or anything with columns; the same bytes again give the same data set.

        Args:
            data: the path of a CSV, Parquet, Arrow stream, npz or text file (.gz, too); or a frame
                of pandas, polars or pyarrow, a dict of arrays, a matrix, a list of records.
            name: by default the file's.

        Raises:
            ValueError: the service reads no files with this suffix.
            TypeError: the data have no columns.
        """
        if isinstance(data, str | Path):
            file = Path(data)
            headers, params = headers_for(file), {"name": name or file.name}
            body: Path | bytes = file
        else:
            from credence.client.arrow import MEDIA_TYPE, to_stream  # noqa: PLC0415
            from credence.client.frames import read_frame  # noqa: PLC0415

            headers, body = {"Content-Type": MEDIA_TYPE}, to_stream(read_frame(data).columns)
            params = {"name": name or "data"}
        return self.create("/datasets", params=params, headers=headers, body=body)

    @listing
    def datasets(self) -> Listing[Dataset]:
        """All data sets, page after page."""
        return self.pages("/datasets")

    @method
    def dataset(self, dataset_id: str) -> Operation[Dataset]:
        """One data set with its columns."""
        return self.call("GET", path("datasets", dataset_id))

    @method
    def dataset_rows(self, dataset_id: str, limit: int = 20) -> Operation[list[Json]]:
        """The first rows, as records."""
        target, params = path("datasets", dataset_id, "rows"), {"limit": limit}
        return self.call("GET", target, params=params, read=lambda answer: answer.json()["data"])

    @method
    def delete_dataset(self, dataset_id: str) -> Operation[None]:
        """Delete a data set; refused while a queued or running job needs it."""
        return self.call("DELETE", path("datasets", dataset_id))


def model_name_of(data_name: str) -> str:
    """A valid model name from a data set's: `Concrete (v2).csv` becomes `concrete-v2`."""
    stem = data_name.partition(".")[0].lower()
    return re.sub(r"[^a-z0-9]+", "-", stem).strip("-")[:63] or "model"


def dataset_of(calls: Calls, data: Any) -> Operation[tuple[str, str | None]]:
    """The id of the data set, and its name if it has one; data other than an id are uploaded."""
    if isinstance(data, str) and data.startswith("ds_") and not Path(data).exists():
        return data, (yield from DatasetCalls.dataset(calls, data))["name"]
    uploaded = yield from DatasetCalls.upload(calls, data)
    return uploaded["id"], uploaded["name"] if isinstance(data, str | Path) else None


def headers_for(path: Path) -> dict[str, str]:
    """The headers of an upload of this file; `.gz` after a known suffix is a content encoding.

    Raises:
        ValueError: the service reads no files with this suffix.
    """
    gzipped = path.suffix == ".gz"
    suffix = Path(path.stem).suffix if gzipped else path.suffix
    if suffix not in MEDIA_TYPES:
        known = ", ".join(MEDIA_TYPES)
        raise ValueError(f"{path.name}: suffix {suffix!r} is not one of {known} (or these .gz)")
    headers = {"Content-Type": MEDIA_TYPES[suffix]}
    return headers | {"Content-Encoding": "gzip"} if gzipped else headers
