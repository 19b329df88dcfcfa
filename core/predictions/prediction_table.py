"""A prediction as an Arrow table, for Parquet results and Arrow responses.

`models.prediction.outputs` names the columns. Values that are not finite or could not be estimated
are null, as in JSON.
"""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from core.exceptions import Invalid
from models.features.columns import level_text
from models.joint.prediction import JointPrediction
from models.prediction.answers.answer import ListsOfClasses, Names
from models.prediction.answers.reasons import REASONS, Reason, Value
from models.prediction.answers.totals import GROUP
from models.prediction.prediction import ClassName, Prediction, RowPrediction


def to_table(prediction: Prediction) -> pa.Table:
    """A table with one row per predicted row, and rows of groups after them if they were asked for.

    The types depend on the model only, so that tables can be joined. A level that was requested
    twice has its columns once.

    Raises:
        InvalidInput: the prediction does not form a table.
    """
    classes, columns = prediction.classes or (), prediction.columns()
    rows = pa.table({name: _column(name, v, classes) for name, v in columns.items()})
    if not isinstance(prediction, RowPrediction) or not (below := prediction.rows_below()):
        return rows
    more = pa.table({name: _column(name, v, ()) for name, v in below.items()})
    at = rows.column_names.index("series") + 1
    rows = rows.add_column(at, GROUP, pa.nulls(rows.num_rows, pa.string()))
    return pa.concat_tables([rows, more], promote_options="default")


def beside(kept: pa.Table, predictions: pa.Table) -> pa.Table:
    """The columns of the rows that are kept, and then the predictions of these rows.

    Raises:
        Invalid: a prediction has a column of the name of one that is kept.
    """
    if not kept.num_columns:
        return predictions
    if twice := [name for name in kept.column_names if name in predictions.column_names]:
        raise Invalid([("/keep", f"a prediction has a column {twice[0]!r}, too")])
    names = [*kept.column_names, *predictions.column_names]
    table = pa.table([*kept.columns, *predictions.columns], names=names)
    return table.replace_schema_metadata(predictions.schema.metadata)


def with_metadata(table: pa.Table, model: str, version: int, prediction: Prediction) -> pa.Table:
    """The table with model, version and options as text in the metadata of its schema.

    The names of several targets are JSON, and so are the levels that adaptive intervals were given
    at, by the level that was asked for.
    """
    origin = {
        "model": model,
        "version": version,
        "samples": prediction.samples,
        "seed": prediction.seed,
        "sampler": prediction.sampler,
        "prune": prediction.prune,
    }
    if isinstance(prediction, RowPrediction) and prediction.adapted_levels:
        origin["adapted_levels"] = json.dumps(prediction.adapted_levels)
    if isinstance(prediction, JointPrediction):
        origin["targets"] = json.dumps(list(prediction.targets))
    return table.replace_schema_metadata({key: str(value) for key, value in origin.items()})


def _column(name: str, values: Any, classes: Sequence[ClassName]) -> "pa.Array[Any]":
    if name == "label":
        values = Names(values, tuple(classes))
    if isinstance(values, Names | ListsOfClasses):
        return _of_names(values)
    if isinstance(values, list):
        return _reasons(values) if name == REASONS else pa.array(values, pa.string())
    if values.ndim > 1:
        return _lists(np.moveaxis(values, 0, 1) if name == "draws" else values)
    if values.dtype.kind in "bi":
        return pa.array(values, pa.bool_() if values.dtype == bool else pa.int64())
    if values.dtype.kind == "M":
        return pa.array(values, pa.timestamp("us", tz="UTC"))
    return _floats(values)


def _of_names(values: Names | ListsOfClasses) -> "pa.Array[Any]":
    if isinstance(values, Names):
        return _labels(values.values, values.known)
    offsets = np.concatenate([[0], np.cumsum(values.sizes)])
    names = _labels(list(values.names), values.names).take(pa.array(values.numbers))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), names)


def _labels(labels: list[ClassName], classes: Sequence[ClassName]) -> "pa.Array[Any]":
    """Labels in the type of all classes, so that it is the same in every table."""
    kinds = {type(c) for c in classes}
    for kind, type_ in ((str, pa.string()), (bool, pa.bool_()), (int, pa.int64())):
        if kinds == {kind} and not _exceeds_int64(classes):
            return pa.array(labels, type_)
    return pa.array([float(label) for label in labels], pa.float64())


def _exceeds_int64(classes: Sequence[ClassName]) -> bool:
    """Whether a class is beyond 64 bits. Whole numbers may be: float32 goes to 1e38."""
    return any(not isinstance(c, str) and abs(c) >= 2**63 for c in classes)


def _reasons(rows: Sequence[Sequence[Reason]]) -> "pa.Array[Any]":
    """Lists of structs. Values are texts, because columns have several types."""
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])  # most rows have none
    flat = pa.array([_reason(one) for row in rows if row for one in row], _reason_type())
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)


@cache
def _reason_type() -> pa.DataType:
    text = pa.string()
    seen = pa.struct(
        [
            ("lowest", text),
            ("highest", text),
            ("levels", pa.list_(text)),
            ("count", pa.int64()),
        ]
    )
    return pa.struct(
        [("column", text), ("code", text), ("value", text), ("seen", seen), ("text", text)]
    )


def _reason(reason: Reason) -> dict[str, Any]:
    row = reason.document()
    seen: dict[str, Any] = row["seen"] or {}
    texts = {end: _text(seen[end]) for end in ("lowest", "highest") if end in seen}
    levels = {"levels": [_text(level) for level in seen["levels"]]} if "levels" in seen else {}
    return row | {"value": _text(row["value"]), "seen": (seen and seen | texts | levels) or None}


def _text(value: Value) -> str | None:
    return None if value is None else level_text(value)


def _floats(values: np.ndarray) -> "pa.Array[Any]":
    finite = np.isfinite(values)
    return pa.array(values, pa.float64(), mask=None if finite.all() else ~finite)


def _lists(values: np.ndarray) -> "pa.Array[Any]":
    """An array's first axis as rows, the others as nested lists of fixed size."""
    array = _column("", np.ascontiguousarray(values).reshape(-1), ())
    for size in reversed(values.shape[1:]):
        array = pa.FixedSizeListArray.from_arrays(array, size)
    return array
