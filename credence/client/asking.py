"""Rows in any form → requests that the service takes → one `Prediction`."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import httpx
import pyarrow as pa

from credence.client.calls import Calls
from credence.client.flows import Flow
from credence.client.frames import ARROW, Frame, from_stream, read_frame, select, to_stream
from credence.client.prediction import Prediction
from credence.client.requests import Request, creation, request
from credence.exceptions import CredenceAPIError
from credence.progress import rows_bar
from credence.questions import inputs_of
from credence.types import PredictSettings, Version

WORK_PER_REQUEST = 1_000_000  # a tenth of what the service takes by default: progress can be seen
BYTES_PER_REQUEST = 2**24  # a quarter of the largest body
TOO_LARGE = 413
WHOLE = ("store", "target_mc_error", "deadline_ms", "horizon")  # what is about all rows at once


def ask(
    calls: Calls, version: Version, rows: Any, settings: PredictSettings, future: Any = None
) -> Flow[Prediction]:
    """Predict rows, or what comes after them; many rows in several requests.

    Raises:
        TypeError, ValueError: the rows have no columns, or lack a feature.
    """
    features = inputs_of(version)
    frame = read_frame(rows, [feature["name"] for feature in features])
    frame = Frame(select(frame.table, features), frame.restore)
    options: dict[str, Any] = {"model": version["model"], "version": version["version"], **settings}
    if future is not None:
        answer = yield from _go_on(calls, frame.table, read_frame(future).table, options)
    elif version["task"] == "forecasting" or any(name in settings for name in WHOLE):
        answer = yield from _predict(calls, frame.table, options)
    else:
        answer = yield from _predict_in_parts(calls, frame.table, options)
    classes = version.get("classes")
    return Prediction(answer, None if classes is None else tuple(classes), frame.restore)


def _predict_in_parts(calls: Calls, table: pa.Table, options: dict[str, Any]) -> Flow[pa.Table]:
    """Parts that turn out to be too large are halved."""
    answers: list[pa.Table] = []
    done, size = 0, _rows_per_request(table, int(options.get("samples", 100)))
    with rows_bar(table.num_rows, visible=calls.progress and table.num_rows > size) as show:
        while done < table.num_rows or not answers:
            part = table.slice(done, size)
            try:
                answers.append((yield from _predict(calls, part, options)))
            except CredenceAPIError as error:
                if error.status != TOO_LARGE or part.num_rows <= 1:
                    raise
                size = part.num_rows // 2
                continue
            done += part.num_rows
            show(part.num_rows)
    return pa.concat_tables(answers)


def _rows_per_request(table: pa.Table, samples: int) -> int:
    bytes_per_row = table.nbytes / max(1, table.num_rows)
    by_work = WORK_PER_REQUEST // max(1, samples)
    return max(1, min(by_work, int(BYTES_PER_REQUEST / max(1.0, bytes_per_row))))


def _predict(calls: Calls, table: pa.Table, options: dict[str, Any]) -> Flow[pa.Table]:
    params = {name: _parameter(value) for name, value in options.items()}
    headers = {"Content-Type": ARROW, "Accept": ARROW}
    return calls.send(_question(options, params=params, headers=headers, body=to_stream(table)))


def _go_on(
    calls: Calls, history: pa.Table, future: pa.Table, options: dict[str, Any]
) -> Flow[pa.Table]:
    """With what is known of the steps ahead, for which an Arrow body has no place."""
    document = options | {"inputs": _columns(history), "future": _columns(future)}
    return calls.send(_question(options, json=document, headers={"Accept": ARROW}))


def _question(options: Mapping[str, Any], **what: Any) -> Request[Any]:
    """A prediction changes nothing, unless it is stored."""
    if options.get("store"):
        return creation("/predict", read=_table, **what)
    return request("POST", "/predict", read=_table, repeatable=True, **what)


def _table(answer: httpx.Response) -> pa.Table:
    return from_stream(answer.content)


def _columns(table: pa.Table) -> dict[str, list[Any]]:
    """Columns as JSON has them: times as RFC 3339."""
    return {
        name: [v.isoformat() if isinstance(v, date) else v for v in column.to_pylist()]
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def _parameter(value: Any) -> Any:
    """As the query has it: booleans as in JSON."""
    return str(value).lower() if isinstance(value, bool) else value
