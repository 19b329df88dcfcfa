"""Reads requests whose body is a file of rows: CSV, Excel, Parquet, ….

Columns are found by their names, and read as those of the training data were. A file may have other
columns, such as the target.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import QueryParams

from app.http.bodies import MAX_BYTES
from app.http.large_work import INLINE_BYTES
from app.serving.kept import columns_to_keep, keep_columns
from app.serving.query import read_options
from app.serving.request import FileReport, PredictionRequest
from core.datasets.apart import Workplace, read
from core.datasets.columns import strings
from core.datasets.columns.conversion import to_numpy
from core.datasets.dataset import given_fields
from core.datasets.files.opening import opened
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Source
from core.datasets.formats import declared_format, is_form
from core.datasets.inputs import check_present, to_inputs
from core.datasets.understanding.columns import Understood, understand
from core.datasets.understanding.fixes import fixes_like
from core.exceptions import Invalid, TooLarge, UnsupportedFormat
from core.inputs.unread_cells import unread_note
from core.validation import describe
from models.features.columns import EXACT, ColumnReading, Columns, InputColumn

ROWS = "/inputs"
MAX_TABLE_BYTES = 4 * MAX_BYTES  # limits how far a packed file expands
OPTIONS = tuple(one.name for one in fields(ReadingOptions))
ELSEWHERE = "upload the file to /datasets, and predict it with POST /predict/batch"

SAID = ("case", "mostly_numeric", "mostly_dates")
"""Findings for the owner of a data set: `unread_cells` says what concerns a prediction."""

_READING = TypeAdapter(ReadingOptions)


def is_file(media_type: str) -> bool:
    """Whether a body of this type is a file of rows; JSON is a request, and so is a form."""
    try:
        declared_format(media_type)
    except UnsupportedFormat:
        return False
    return media_type != "application/json" and not is_form(media_type)


@dataclass(frozen=True)
class FileRows:
    """The rows of a file, and what was found in it."""

    source: Source
    report: FileReport

    def decode(self, features: Sequence[InputColumn], _: Collection[str] = ()) -> Columns:
        """Arrays by feature, in the convention of `models.features.columns`.

        Raises:
            Invalid: a feature has no column, or a cell cannot be read.
        """
        made, pairs = self._read(features)
        self.report.notes[:] = [*self._unread(features, made), *_notes(pairs, made)]
        used, there = {*made, *self.report.kept.column_names}, self.source.table.column_names
        self.report.ignored[:] = [name for name in there if name not in used]
        return made

    def column(self, column: InputColumn) -> np.ndarray:
        """The array of another column, which is no feature.

        Raises:
            Invalid: there is no such column, or a cell cannot be read.
        """
        made, _ = self._read([column])
        self.report.notes.extend(self._unread([column], made))
        return made[column.name]

    def _unread(self, wanted: Sequence[InputColumn], made: Columns) -> Iterator[str]:
        """What is said about cells that could not be read."""
        for one in wanted:
            note = unread_note(one, self.source.table.column(one.name), made[one.name], self.line)
            if note is not None:
                yield note

    def _read(
        self, wanted: Sequence[InputColumn]
    ) -> tuple[Columns, list[tuple[InputColumn, Understood]]]:
        """Arrays by column, and what was understood of each."""
        table = self.source.table
        check_present(wanted, table.column_names, ROWS)
        source = replace(self.source, table=table.select([column.name for column in wanted]))
        given = [_cells_of(column) for column in wanted]
        fixes = fixes_like(given, source.reading.decimal)
        with _pointing_to_rows():
            found = understand(source, {fix.name: fix for fix in fixes})
        pairs = list(zip(wanted, found, strict=True))
        types = {column.name: _type(one, column) for column, one in pairs}
        columns = {one.reading.name: to_numpy(one.column, types[one.reading.name]) for one in found}
        readings = [one.reading for one in found]
        return to_inputs(columns, types, wanted, ROWS, self.line, readings=readings), pairs

    def line(self, row: int) -> str:
        """Where a row is in the file."""
        return f"line {self.source.lines([row])[0]}"


def read_request(
    query: QueryParams, media_type: str, body: bytes, at: Workplace, files: ExitStack
) -> PredictionRequest:
    """The request: its rows are in the file, options of prediction and of reading in the query.

    Args:
        at: where the file is read.
        files: removes them; close it once the request has been answered.

    Raises:
        NotParseable, UnsupportedFormat: the file cannot be read.
        TooLarge: the file has more than `MAX_TABLE_BYTES` once it is unpacked and read.
        Invalid: a parameter is wrong, or there are no rows.
        Unavailable: too much memory is reserved by others.
    """
    names, query = columns_to_keep(query)
    parameters, reading = split(query)
    options = read_options(parameters)
    rows = read_rows(media_type, body, reading, at, files, names)
    num_rows = rows.source.table.num_rows
    num_bytes = max(len(body), INLINE_BYTES + 1)  # texts take long to read: always in a thread
    request = PredictionRequest.of(options, num_rows, num_bytes, rows.decode)
    return replace(request, file=rows.report, notes=rows.report.notes)


def read_rows(  # noqa: PLR0917 - a file, and how and where it is read
    media_type: str,
    body: bytes,
    reading: ReadingOptions,
    at: Workplace,
    files: ExitStack,
    kept: Sequence[str],
) -> FileRows:
    """The rows of a file; `kept` names columns to keep. See `read_request`."""
    path = Path(files.enter_context(TemporaryDirectory(prefix="predict-", dir=at.folder))) / "body"
    try:
        path.write_bytes(body)
        file = files.enter_context(opened(path, media_type, at.max_bytes, path.parent))
        with _pointing_to_rows():
            source = files.enter_context(read(file, reading, replace(at, folder=path.parent)))
    except TooLarge as error:
        raise TooLarge(f"{error}; {ELSEWHERE}") from error
    if not source.table.num_rows:
        raise Invalid([(ROWS, "there are no rows: give at least one")])
    columns = keep_columns(source.table, kept)
    return FileRows(source, FileReport(given_fields(source.reading), columns))


@contextmanager
def _pointing_to_rows() -> Iterator[None]:
    """Errors point to the rows of the request; readers point to the columns of a data set."""
    try:
        yield
    except Invalid as error:
        raise Invalid([(ROWS, message) for _, message in error.errors]) from error


def split(query: QueryParams) -> tuple[QueryParams, ReadingOptions]:
    """The options of the prediction, and those of reading.

    Raises:
        Invalid: an option of reading is given twice, or is wrong.
    """
    items = query.multi_items()
    given = [(name, value) for name, value in items if name in OPTIONS]
    names = [name for name, _ in given]
    if twice := [name for name in OPTIONS if names.count(name) > 1]:
        raise Invalid([(f"/{name}", "is given twice") for name in twice])
    try:
        reading = _READING.validate_python(dict(given))
    except ValidationError as error:
        errors = error.errors(include_url=False)
        raise Invalid([(f"/{e['loc'][0]}", describe(e)) for e in errors]) from None
    return QueryParams([item for item in items if item[0] not in OPTIONS]), reading


def _cells_of(column: InputColumn) -> ColumnReading:
    """How cells are read. Those of levels stay texts: `to_inputs` reads them as the model does."""
    if column.type == "category":
        return ColumnReading(name=column.name, type="category", format=EXACT)
    return column.reading_or_plain


def _type(found: Understood, feature: InputColumn) -> str:
    """The type that a column is read as: words of yes and no are both."""
    type_ = found.reading.type
    words = type_ == "boolean" and strings.is_string(found.column.type)
    return feature.type if words and feature.type == "category" else type_


def _notes(found: Sequence[tuple[InputColumn, Understood]], read: Columns) -> Iterator[str]:
    """What the reader of the predictions should know about the rows."""
    for feature, one in found:
        notes = (note for note in one.findings if note.severity != "info" and note.code not in SAID)
        yield from (f"{feature.name!r}: {note.message}" for note in notes)
        if feature.type == "number" and not feature.missing:
            missing = int(np.isnan(read[feature.name]).sum())
            if missing:
                rows = "1 row has" if missing == 1 else f"{missing} rows have"
                yield f"{rows} no {feature.name!r}, which no training row lacked"
