"""Files of rows with their true values → requests to `/feedback`.

The service reads the files, as it read the training data. Large files of lines go in pieces.
"""

from collections.abc import Iterable
from pathlib import Path

from credence.client.calls import Calls
from credence.client.files.line_pieces import Pieces, is_splittable
from credence.client.files.predictions import (
    BYTES_PER_PIECE,
    ROWS_PER_PIECE,
    file_headers,
    has_lines,
    in_pieces,
    to_parameter,
)
from credence.client.operations import Operation
from credence.client.requests import creation
from credence.exceptions import CredenceAPIError
from credence.types import Feedback, Json, Version

ROWS = ROWS_PER_PIECE // 100  # the service scores each row with 100 samples
ALL_UNKNOWN = ["/truth"]  # the path of the only error if no row of a piece has a true value


def label_file(
    calls: Calls,
    version: Version,
    file: Path,
    settings: Json,
    headers: dict[str, str] | None = None,
) -> Operation[Feedback]:
    """Send the rows of a file; the last response, whose window has all, is returned.

    Args:
        settings: `truth`, the column of true values; perhaps `prune`, and options of reading.
        headers: with the file's media type; by default that of its suffix.
    """
    headers = headers or file_headers(file, version)
    with file.open("rb") as opened:
        if has_lines(headers) and is_splittable(opened.read(2**16)):
            opened.seek(0)
            return (yield from label_lines(calls, version, opened, headers, settings))
    return (yield from label_body(calls, version, file, headers, settings))


def label_lines(
    calls: Calls,
    version: Version,
    lines: Iterable[bytes],
    headers: dict[str, str],
    settings: Json,
) -> Operation[Feedback]:
    """Send the rows of a CSV or JSON-lines file in pieces; a later one may have no true values.

    Raises:
        CredenceAPIError: the first piece has no true value, or the service refuses one.
    """
    answers: list[Feedback] = []

    def send(body: bytes, settings: Json) -> Operation[Json]:
        try:
            answers.append((yield from label_body(calls, version, body, headers, settings)))
        except CredenceAPIError as error:
            if not answers or [field.path for field in error.errors] != ALL_UNKNOWN:
                raise  # without an answer, it is not known how the file is written
        return answers[-1].get("reading", {})

    yield from in_pieces(Pieces(lines, ROWS, BYTES_PER_PIECE), settings, send)
    return answers[-1]


def label_body(
    calls: Calls, version: Version, body: Path | bytes, headers: dict[str, str], settings: Json
) -> Operation[Feedback]:
    """Send a whole file, in one request."""
    options = {"model": version["model"], "version": version["version"], **settings}
    params = {name: to_parameter(value) for name, value in options.items()}
    return calls.send(creation("/feedback", params=params, headers=headers, body=body))
