"""Writes responses of `POST /predict` as CSV, with the columns of the Arrow response."""

import csv
import io
import json
from datetime import datetime
from typing import Any

import pyarrow as pa

from app.serving.request import PredictionResponse
from core.predictions.prediction_table import beside, to_table

MEDIA_TYPE = "text/csv"
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # the beginnings of a formula in spreadsheets


def write_response(response: PredictionResponse) -> bytes:
    """A header, and a line per predicted row. An empty cell is null."""
    table = to_table(response.prediction)
    return write_table(table if response.file is None else beside(response.file.kept, table))


def write_table(table: pa.Table) -> bytes:
    """The same of the table of the Arrow response."""
    columns = [table.column(name).to_pylist() for name in table.column_names]
    text = io.StringIO(newline="")
    writer = csv.writer(_Lines(text))
    writer.writerow(map(_harmless, table.column_names))
    writer.writerows([_harmless(_cell(v)) for v in row] for row in zip(*columns, strict=True))
    return text.getvalue().encode()


class _Lines:
    """Takes the lines of a writer that ends them with CR and LF, so that it quotes both alone."""

    def __init__(self, text: io.StringIO) -> None:
        self._text = text

    def write(self, line: str) -> None:
        """Write a line with LF at its end."""
        self._text.write(line.removesuffix("\r\n") + "\n")


def _cell(value: Any) -> Any:
    """Booleans and lists as in JSON, times as in RFC 3339, reasons in words."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        return "; ".join(reason["text"] for reason in value) or None
    if isinstance(value, list):
        return json.dumps(value, default=_cell)
    return value


def _harmless(value: Any) -> Any:
    """The value; a text that a spreadsheet would compute begins with an apostrophe.

    Source: OWASP, CSV Injection.
    """
    if not (isinstance(value, str) and value.startswith(FORMULA)) or _is_number(value):
        return value
    return f"'{value}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
