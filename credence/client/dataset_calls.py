"""Data sets."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from credence.client.calls import Calls
from credence.client.files.media_types import headers_for
from credence.client.operations import Listing, Operation, listing, method
from credence.client.requests import path
from credence.types import ColumnFix, Dataset, DatasetOptions, Json


class DatasetCalls(Calls):
    """Upload, read from sources, list and delete data sets."""

    @method
    def upload(
        self,
        data: Any,
        name: str | None = None,
        *,
        like: str | None = None,
        **options: Unpack[DatasetOptions],
    ) -> Operation[Dataset]:
        """Upload a file, or anything with columns; the same bytes again give the same data set.

        How a file is written is found out; `reading` and `findings` of the result say what was
        found.

        Args:
            data: the path of a CSV, JSON lines, Excel, Parquet, … file, also compressed; or a frame
                of pandas, polars or pyarrow, a dict of arrays, a matrix, a list of records.
            name: by default the file's.
            like: the id of a data set, or the name of a model, whose columns are read in this way.
            options: how the file is written, as `delimiter=";"`, where the service is mistaken; and
                `unique_rows=True` leaves out rows that equal an earlier one.

        Raises:
            TypeError: the data have no columns.
        """
        if isinstance(data, str | Path):
            file = Path(data)
            headers, name = headers_for(file), name or file.name
            body: Path | bytes = file
        else:
            from credence.client.arrow import MEDIA_TYPE, to_stream  # noqa: PLC0415
            from credence.client.frames import read_frame  # noqa: PLC0415

            headers, body = {"Content-Type": MEDIA_TYPE}, to_stream(read_frame(data).columns)
        params = {"name": name or "data", "like": like, **options}
        return self.create("/datasets", params=params, headers=headers, body=body)

    @method
    def read_source(
        self,
        name: str,
        uri: str | None = None,
        *,
        format: str | None = None,
        secret: str | None = None,
        database: str | None = None,
        query: str | None = None,
        **options: Unpack[DatasetOptions],
    ) -> Operation[Dataset]:
        """A data set from files, a table or a query where they lie; the service reads them.

        The same bytes of the same source again give the same data set.

        Args:
            name: of the data set.
            uri: `s3://lake/sales/*.parquet`, `https://…`, `file:///…`; a folder ends in `/`.
            format: such as `delta` or `iceberg`; by default it is found out.
            secret: the operator's name of the credentials.
            database: the operator's name of a database, which runs `query`.
            query: one SELECT.
            options: how a file is written, as `delimiter=";"`.
        """
        given = {
            "uri": uri,
            "format": format,
            "secret": secret,
            "database": database,
            "query": query,
        }
        source = {key: value for key, value in given.items() if value is not None}
        body: Json = {"name": name, "source": source}
        return self.create("/datasets", json=body | ({"options": options} if options else {}))

    @method
    def refresh(self, dataset_id: str) -> Operation[Dataset]:
        """Read the source of a data set again: the next data set, or the same one."""
        return self.create(path("datasets", dataset_id, "refresh"))

    @method
    def fix_columns(
        self,
        dataset_id: str,
        columns: Sequence[ColumnFix] = (),
        name: str | None = None,
        **options: Unpack[DatasetOptions],
    ) -> Operation[Dataset]:
        """A new data set of the same bytes, of which columns, or the file, are read otherwise.

        Args:
            columns: as `[{"name": "price", "type": "number", "missing": ["-"]}]`, or as
                `[{"name": "city", "levels": {"Muenich": "Munich"}}]`, which merges levels; the
                `fix` of a finding has such `columns`, or such `options`.
            name: of the new data set; by default that of the old one.
            options: how the file is written, as `decimal=","`, and `unique_rows=True`, which leaves
                out rows that equal an earlier one.
        """
        body: Json = {"columns": list(columns), "options": dict(options)}
        body |= {} if name is None else {"name": name}
        return self.create(path("datasets", dataset_id, "columns"), json=body)

    @listing
    def datasets(self) -> Listing[Dataset]:
        """All data sets, page after page."""
        return self.pages("/datasets")

    @method
    def dataset(self, dataset_id: str, target: str | None = None) -> Operation[Dataset]:
        """One data set with its columns.

        Args:
            target: a column to predict; the findings then say what it means for a training.
        """
        return self.call("GET", path("datasets", dataset_id), params={"target": target})

    @method
    def dataset_rows(self, dataset_id: str, limit: int = 20) -> Operation[list[Json]]:
        """The first rows, as records."""
        rows, target, cursor = list[Json](), path("datasets", dataset_id, "rows"), None
        while True:  # a page of large rows ends early
            params = {"limit": limit - len(rows), "cursor": cursor}
            page = yield from self.call("GET", target, params=params)
            rows += page["data"]
            cursor = page.get("next_cursor")  # earlier services give none
            if cursor is None or len(rows) >= limit:
                return rows

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
