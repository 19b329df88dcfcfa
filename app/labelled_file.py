"""Reads requests of `POST /feedback` whose body is a file: rows, and a column of true values."""

import re
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from starlette.datastructures import QueryParams

from app.http.large_work import INLINE_BYTES
from app.schemas.feedback import FileParameters
from app.serving.file_format import ROWS, FileRows, read_rows, split
from app.serving.query import scalar
from app.serving.request import PredictionRequest
from core.datasets.apart import Workplace
from core.exceptions import Invalid
from core.validation import validate
from models.features.columns import InputColumn, level_text
from models.messages import nearest_name
from models.model import TrainedModel

TEXTS = ("model", "version", "truth")
LABEL = re.compile(r"/truth/(\d+)")
MAX_NAMES = 20  # that a message lists


@dataclass(frozen=True)
class LabelledFile:
    """The rows of a file, and the column that holds their labels."""

    parameters: FileParameters
    rows: FileRows
    num_bytes: int

    @property
    def request(self) -> PredictionRequest:
        """The request that predicts the rows."""
        return PredictionRequest(
            model=self.parameters.model,
            version=self.parameters.version,
            options=self.parameters.options,
            num_rows=self.rows.source.table.num_rows,
            num_bytes=max(self.num_bytes, INLINE_BYTES + 1),  # always in a thread
            decode=self.rows.decode,
            notes=self.rows.report.notes,
        )

    def truth(self, model: TrainedModel) -> list[Any]:
        """The label of each row as in JSON, None if its cell is empty.

        Raises:
            Invalid: the model forecasts, the column is a feature, or a cell cannot be read.
        """
        if not model.has_independent_rows:
            raise Invalid([(ROWS, "the labels of a forecast do not go into a file: send JSON")])
        name = self.parameters.truth
        if name in {column.name for column in model.inputs}:
            message = f"{name!r} is a feature of the model: name the column of the target"
            raise Invalid([(ROWS, message)])
        values = self.rows.column(_label_column(model, name))
        if values.dtype == object:
            classes = {level_text(one): one for one in model.classes or ()}
            return [value if value is None else classes.get(value, value) for value in values]
        unknown = np.isnan(values)
        found = values.astype(bool) if _has_booleans(model) else values
        return [None if i else value for value, i in zip(found.tolist(), unknown, strict=True)]

    def located(self, error: Invalid) -> Invalid:
        """The same error; messages about labels say where they are in the file."""
        return Invalid([(path, self._place(path) + message) for path, message in error.errors])

    def _place(self, path: str) -> str:
        found = LABEL.fullmatch(path)
        if found is None:
            return ""
        return f"column {self.parameters.truth!r}, {self.rows.line(int(found[1]))}: "


def read_labelled_file(
    query: QueryParams, media_type: str, body: bytes, at: Workplace, files: ExitStack
) -> LabelledFile:
    """The rows of the body; the query has model, `truth` and options of reading.

    Raises:
        NotParseable, UnsupportedFormat, TooLarge, Unavailable: see `file_format.read_request`.
        Invalid: a parameter is wrong, there are no rows, or no column with the labels.
    """
    query, reading = split(query)
    names = [name for name, _ in query.multi_items()]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise Invalid([(f"/{name}", "is given twice") for name in twice])
    document = {name: text if name in TEXTS else scalar(text) for name, text in query.items()}
    parameters = validate(FileParameters, document)
    rows = read_rows(media_type, body, reading, at, files, kept=())
    table, name = rows.source.table, parameters.truth
    if name not in table.column_names:
        near = nearest_name(name, table.column_names)
        meant = "" if near is None else f"; did you mean {near!r}?"
        there = ", ".join(table.column_names[:MAX_NAMES])
        raise Invalid([(ROWS, f"no column {name!r} of true values{meant}; the file has {there}")])
    report = replace(rows.report, kept=table.select([name]))  # so that it is not called ignored
    return LabelledFile(parameters, replace(rows, report=report), len(body))


def _label_column(model: TrainedModel, name: str) -> InputColumn:
    """The target under the name that it has in the file, read as that of the training data."""
    label = model.label
    reading = label.reading
    if _has_booleans(model):
        readings = [one for one in model.readings if one.name == label.name]
        reading = next((one for one in readings if one.type == "boolean"), None)
        label = replace(label, type="boolean", spellings=None)
    named = None if reading is None else replace(reading, name=name)
    return replace(label, name=name, reading=named)


def _has_booleans(model: TrainedModel) -> bool:
    classes = model.classes
    return classes is not None and all(isinstance(one, bool) for one in classes)
