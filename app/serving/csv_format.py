"""Writes responses of `POST /predict` as CSV, with the columns of the Arrow response."""

import csv
import io
import json
from datetime import datetime
from typing import Any

from app.serving.request import PredictionResponse
from core.predictions.prediction_table import to_table

MEDIA_TYPE = "text/csv"


def write_response(response: PredictionResponse) -> bytes:
    """A header, and a line per predicted row. An empty cell is null."""
    table = to_table(response.prediction)
    columns = [table.column(name).to_pylist() for name in table.column_names]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows([_cell(value) for value in row] for row in zip(*columns, strict=True))
    return text.getvalue().encode()


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
