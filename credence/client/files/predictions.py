"""Files of rows → requests to `/predict` → tables.

The service reads the files, as it read the training data. Large files of lines go in pieces.
"""

import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import httpx

from credence.client.arrow import MEDIA_TYPE, Table, from_stream
from credence.client.calls import Calls
from credence.client.dataset_calls import DatasetCalls
from credence.client.files.line_pieces import Pieces, header_of, is_splittable
from credence.client.files.media_types import UNKNOWN, headers_for
from credence.client.job_calls import JobCalls
from credence.client.operations import Operation
from credence.client.requests import Request, creation, request
from credence.exceptions import CredenceAPIError
from credence.types import Json, ReadingOptions, Version

READING = tuple(ReadingOptions.__annotations__)
LINES = ("text/csv", "text/tab-separated-values", "application/x-ndjson")
REQUESTS = ("application/json", MEDIA_TYPE)  # bodies of these types are requests, no files
ROWS_PER_PIECE = 1_000_000  # × samples: a tenth of the default MAX_WORK, for a progress bar
BYTES_PER_PIECE = 2**24  # a quarter of the largest body
WHOLE = ("store", "target_mc_error", "deadline_ms", "horizon")  # options of one whole request
TOO_LARGE = 413

OnTable = Callable[[Table], None]


def predict_file(  # noqa: PLR0917 - a request, its rows, and where the answer goes
    calls: Calls,
    version: Version,
    file: Path,
    settings: Json,
    on_table: OnTable,
    headers: dict[str, str] | None = None,
) -> Operation[None]:
    """Predict the rows of a file; `on_table` gets the predictions, in order.

    Args:
        settings: options of the prediction and of reading.
        headers: with the file's media type; by default that of its suffix.
    """
    headers = headers or file_headers(file, version)
    with file.open("rb") as opened:
        head = opened.read(2**16)
    if has_lines(headers) and is_splittable(head) and may_come_in_pieces(version, settings):
        with file.open("rb") as opened:
            yield from predict_lines(calls, version, opened, headers, settings, on_table)
        return
    try:
        table = yield from predict_body(calls, version, file, headers, settings)
    except CredenceAPIError as error:
        if error.status != TOO_LARGE or not may_come_in_pieces(version, settings):
            raise
        table = yield from _predict_offline(calls, version, file, settings)
    on_table(table)


def _predict_offline(
    calls: Calls, version: Version, file: Path, settings: Json
) -> Operation[Table]:
    """The predictions of a job, for a file that is too large for one request.

    Raises:
        ModuleNotFoundError: pyarrow is not installed, which reads the job's result.
    """
    from pyarrow import BufferOutputStream, ipc, parquet  # noqa: PLC0415 - 170 MB, for this alone

    reading = {name: settings[name] for name in READING if name in settings}
    options = {name: value for name, value in settings.items() if name not in READING}
    like = version["model"]
    dataset = yield from DatasetCalls.upload(calls, file, like=like, **reading)
    if "*" in options.get("keep", ()):
        options["keep"] = [column["name"] for column in dataset["columns"]]
    about = {"model": like, "version": version["version"], "dataset": dataset["id"]}
    job = yield from JobCalls.submit_batch(calls, about | options)
    yield from JobCalls.finished(calls, job["id"])
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.parquet"
        yield from JobCalls.download_result(calls, job["id"], result)
        table: Any = parquet.read_table(result)
    sink: Any = BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return from_stream(sink.getvalue().to_pybytes())


def predict_lines(  # noqa: PLR0917 - a request, its rows, and where the answer goes
    calls: Calls,
    version: Version,
    lines: Iterable[bytes],
    headers: dict[str, str],
    settings: Json,
    on_table: OnTable,
) -> Operation[None]:
    """Predict the rows of a CSV or JSON-lines file in pieces.

    The first piece tells how the file is written; the others are read in this way.
    """
    if not may_come_in_pieces(version, settings):
        body = b"".join(lines)
        on_table((yield from predict_body(calls, version, body, headers, settings)))
        return

    def predict(body: bytes, settings: Json) -> Operation[Json]:
        table = yield from predict_body(calls, version, body, headers, settings)
        on_table(table)
        reading: Json = json.loads(table.metadata.get("reading", "{}"))
        return reading

    per_piece = ROWS_PER_PIECE // max(1, int(settings.get("samples", 100)))
    yield from in_pieces(Pieces(lines, per_piece, BYTES_PER_PIECE), settings, predict)


def in_pieces(
    pieces: Pieces, settings: Json, send: Callable[[bytes, Json], Operation[Json]]
) -> Operation[None]:
    """Send the rows of a text file in pieces; a piece that is too large is halved.

    Args:
        send: sends a piece, and returns how the service has read it.
    """
    header, is_first = b"", True
    while (rows := pieces.next()) or is_first:
        try:
            reading = yield from send(header + b"".join(rows), settings)
        except CredenceAPIError as error:
            if error.status != TOO_LARGE or len(rows) <= 2:
                raise
            pieces.put_back(rows)
            continue
        if is_first:
            header = header_of(rows, reading)
            settings = settings | _fixed(reading)
        is_first = False


def predict_body(
    calls: Calls, version: Version, body: Path | bytes, headers: dict[str, str], settings: Json
) -> Operation[Table]:
    """The prediction of a whole file, in one request."""
    return calls.send(_request(version, body, headers | {"Accept": MEDIA_TYPE}, settings, _table))


def answer_to_file(
    calls: Calls, version: Version, body: Path | bytes, headers: dict[str, str], settings: Json
) -> Operation[Json]:
    """The service's JSON for a whole file, in one request."""
    return calls.send(_request(version, body, headers, settings, httpx.Response.json))


def file_headers(file: Path, version: Version) -> dict[str, str]:
    """The headers of a file of rows: plain text is a text per line for language models alone."""
    headers = headers_for(file)
    is_texts = headers["Content-Type"] == "text/plain" and version["task"] != "language_model"
    if headers["Content-Type"] in REQUESTS or is_texts:
        return headers | {"Content-Type": UNKNOWN}
    return headers


def _request(
    version: Version,
    body: Path | bytes,
    headers: dict[str, str],
    settings: Json,
    read: Callable[[httpx.Response], Any],
) -> Request[Any]:
    """A prediction may be repeated; one that is stored needs an idempotency key for that."""
    options = {"model": version["model"], "version": version["version"], **settings}
    params = {name: to_parameter(value) for name, value in options.items()}
    parts: dict[str, Any] = {"params": params, "headers": headers, "body": body, "read": read}
    if settings.get("store"):
        return creation("/predict", **parts)
    return request("POST", "/predict", repeatable=True, **parts)


def has_lines(headers: dict[str, str]) -> bool:
    """Whether a file with these headers is a text with a row per line."""
    return headers["Content-Type"] in LINES and "Content-Encoding" not in headers


def may_come_in_pieces(version: Version, settings: Json) -> bool:
    """Whether rows are independent, so that they may come in several requests."""
    tasks = ("forecasting", "language_model")
    return version["task"] not in tasks and not any(name in settings for name in WHOLE)


def _fixed(reading: Json) -> Json:
    """The options that read the later pieces, which begin with the header."""
    names = ("delimiter", "quote", "encoding", "decimal", "header", "comment", "index")
    return {name: reading[name] for name in names if reading.get(name) is not None} | {"skip": 0}


def _table(response: httpx.Response) -> Table:
    return from_stream(response.content)


def to_parameter(value: Any) -> Any:
    """The value in a query string: booleans and objects as JSON."""
    if isinstance(value, dict):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else value
