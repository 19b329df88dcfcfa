"""What came true of rows, told to a version: columns → requests to `POST /feedback`."""

from typing import Any

import pyarrow as pa

from credence.client.asking import columns_of
from credence.client.calls import Calls
from credence.client.flows import Flow
from credence.client.frames import read_frame, select
from credence.client.requests import creation
from credence.questions import inputs_of
from credence.types import Feedback, Version

ROWS_PER_REQUEST = 1_000  # each is scored with 100 samples: a hundredth of the default MAX_WORK


def tell(calls: Calls, version: Version, rows: Any, truth: Any) -> Flow[Feedback]:
    """Tell what came true; the answer to the last part knows of all of them.

    Args:
        truth: a value per row, None or NaN where it is not known; or the column that has them.

    Raises:
        ValueError: another number of values than of rows, a missing column, no rows.
    """
    table = read_frame(rows, [feature["name"] for feature in version["features"]]).table
    values = _truth(table, truth)
    if len(values) != table.num_rows or not values:
        raise ValueError(f"{len(values)} values for {table.num_rows} rows: give one for each row")
    inputs = select(table, inputs_of(version))
    about = {"model": version["model"], "version": version["version"]}
    told: Feedback | None = None
    for start in range(0, len(values), ROWS_PER_REQUEST):
        labels = values[start : start + ROWS_PER_REQUEST]
        if any(label is not None for label in labels):
            part = columns_of(inputs.slice(start, ROWS_PER_REQUEST))
            body = about | {"inputs": part, "truth": labels}
            told = yield from calls.send(creation("/feedback", json=body))
    if told is None:
        raise ValueError("no value is known: there is nothing to tell")
    return told


def _truth(table: pa.Table, truth: Any) -> list[Any]:
    if isinstance(truth, str):
        if truth not in table.column_names:
            raise ValueError(f"no column {truth!r}: there are {', '.join(table.column_names)}")
        return table.column(truth).to_pylist()
    return pa.array(truth, from_pandas=True).to_pylist()
