"""A file of rows, or standard input, as the commands send it to the service."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from credence.commands.files.rows import STANDARD_INPUT, RowFormat
from credence.commands.parameters import in_options
from credence.exceptions import CredenceAPIError
from credence.types import Feedback, Json, Version

if TYPE_CHECKING:
    from credence.client.calls import Calls
    from credence.client.files.predictions import OnTable
    from credence.client.operations import Operation

HEAD_BYTES = 2**16
TYPES: dict[str, str] = {
    "csv": "text/csv",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.file",
    "text": "text/plain",
}
ABOUT_ROWS = ("/inputs", "/truth")  # paths of errors in the file, not in an option
UNREADABLE = (400, 415)  # statuses for a file that cannot be read


@dataclass(frozen=True)
class Input:
    """Rows for the service.

    Args:
        name: for messages.
        source: a file; or the lines of a text, which may come in pieces; or everything at once.
    """

    name: str
    source: Path | Iterable[bytes] | bytes
    headers: dict[str, str]

    def predict(
        self, calls: "Calls", version: Version, settings: Json, on_table: "OnTable"
    ) -> "Operation[None]":
        """Predict the rows; `on_table` gets the predictions, in order."""
        from credence.client.files import predictions  # noqa: PLC0415 - loads httpx: slow

        match self.source:
            case Path() as file:
                headers = self.headers or None
                yield from predictions.predict_file(
                    calls, version, file, settings, on_table, headers
                )
            case bytes() as body:
                sent = predictions.predict_body(calls, version, body, self.headers, settings)
                on_table((yield from sent))
            case lines:
                yield from predictions.predict_lines(
                    calls, version, lines, self.headers, settings, on_table
                )

    def label(self, calls: "Calls", version: Version, settings: Json) -> "Operation[Feedback]":
        """Send the rows with their true values; `truth` of the settings names the column."""
        from credence.client.files import feedback  # noqa: PLC0415

        match self.source:
            case Path() as file:
                headers = self.headers or None
                return feedback.label_file(calls, version, file, settings, headers)
            case bytes() as body:
                return feedback.label_body(calls, version, body, self.headers, settings)
            case lines:
                return feedback.label_lines(calls, version, lines, self.headers, settings)

    def answer(self, calls: "Calls", version: Version, settings: Json) -> "Operation[Json]":
        """The service's JSON for all rows at once."""
        from credence.client.files import predictions  # noqa: PLC0415

        match self.source:
            case Path() as file:
                headers = self.headers or predictions.file_headers(file, version)
                return predictions.answer_to_file(calls, version, file, headers, settings)
            case bytes() as body:
                return predictions.answer_to_file(calls, version, body, self.headers, settings)
            case lines:
                body = b"".join(lines)
                return predictions.answer_to_file(calls, version, body, self.headers, settings)


@contextmanager
def input_of(file: Path, format_: RowFormat | None) -> Iterator[Input]:
    """The rows of a file or of standard input, which is CSV or JSON lines if it is text."""
    headers = {} if format_ is None else {"Content-Type": TYPES[format_]}
    if file != STANDARD_INPUT:
        yield Input(str(file), file, headers)
        return
    if sys.stdin.isatty():
        raise typer.BadParameter("no rows: give a FILE, or pipe rows in")
    yield _piped(sys.stdin.buffer, headers)


def _piped(stream: Any, headers: dict[str, str]) -> Input:
    from credence.client.files.line_pieces import is_splittable  # noqa: PLC0415
    from credence.client.files.media_types import UNKNOWN  # noqa: PLC0415
    from credence.client.files.predictions import LINES  # noqa: PLC0415

    head = stream.read(HEAD_BYTES)
    if not headers and is_splittable(head):
        headers = {"Content-Type": TYPES["jsonl" if head.lstrip()[:1] == b"{" else "csv"]}
    headers = headers or {"Content-Type": UNKNOWN}
    if headers["Content-Type"] in LINES and is_splittable(head):
        return Input("-", chain(BytesIO(head + stream.readline()), stream), headers)
    return Input("-", head + stream.read(), headers)


@contextmanager
def refused(name: str) -> Iterator[None]:
    """Rows that the service cannot read are wrong use; other refusals are passed on."""
    try:
        yield
    except CredenceAPIError as error:
        about_rows = [field for field in error.errors if field.path.startswith(ABOUT_ROWS)]
        if error.status in UNREADABLE:
            raise typer.BadParameter(
                in_options(error.detail or str(error)), param_hint=name
            ) from None
        if error.status == 422 and about_rows and len(about_rows) == len(error.errors):
            message = "; ".join(field.message for field in about_rows)
            raise typer.BadParameter(in_options(message), param_hint=name) from None
        raise
