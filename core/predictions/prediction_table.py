"""A prediction as an Arrow table, for Parquet results and Arrow responses.

`models.prediction.declared_outputs` names the columns. Values that are not finite or could not be
estimated are null, as in JSON.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain, groupby
from typing import Any, cast

import numpy as np
import pyarrow as pa

from core.exceptions import Invalid
from core.predictions.document import adapted_levels
from models.exceptions import InvalidInput
from models.features.columns import level_text
from models.joint.answer import JointPrediction
from models.prediction.declared_outputs import (
    ROW_OUTPUTS,
    Declared,
    Output,
    Part,
    at,
    in_columns,
)
from models.prediction.outputs.forecasts import GROUP, GROUPS, TOTALS
from models.prediction.outputs.reasons import REASONS, Reason, Value
from models.prediction.prediction import ClassName, Prediction, RowPrediction
from models.prediction.summary import Summary

Columns = dict[str, tuple[Any, str]]  # values and their unit, by name


def to_table(prediction: Prediction) -> pa.Table:
    """A table with one row per predicted row, and rows of groups after them if they were asked for.

    The types depend on the model only, so that tables can be joined. A level that was requested
    twice has its columns once.

    Raises:
        InvalidInput: the prediction does not form a table.
    """
    if not isinstance(prediction, RowPrediction):
        raise InvalidInput("predictions of a language model are only available as JSON", "/model")
    rows = _table(_of_prediction(prediction), prediction)
    if GROUPS[0].name not in prediction.parts:
        return rows
    groups = _table(_of_groups(prediction), prediction)
    place = rows.column_names.index("series") + 1
    rows = rows.add_column(place, GROUP, pa.nulls(rows.num_rows, pa.string()))
    return pa.concat_tables([rows, groups], promote_options="default")


def _table(columns: Columns, prediction: RowPrediction) -> pa.Table:
    return pa.table({name: _column(*one, prediction) for name, one in columns.items()})


def _of_prediction(prediction: RowPrediction) -> Columns:
    """The columns in the order of the outputs; errors come after what every prediction has."""
    outputs, task = prediction.outputs, prediction.task
    columns = _columns(prediction, ROW_OUTPUTS, task)
    for name, values in (prediction.mc_errors or {}).items():
        if values.ndim == 1 or prediction.classes is None:
            columns[f"{name}_mc_error"] = values, ""
    columns |= _columns(prediction, outputs[len(ROW_OUTPUTS) :], task)
    targets = prediction.targets if isinstance(prediction, JointPrediction) else {}
    for target, one in targets.items():
        own = _of_prediction(one)
        own.pop(REASONS.name, None)
        columns |= {f"target.{target}.{name}": column for name, column in own.items()}
    return columns


def _columns(found: Summary, outputs: Declared, task: str) -> Columns:
    """The values of each column and their unit, by name."""
    columns: Columns = {}
    for is_part, run in groupby(outputs, lambda one: isinstance(one, Part)):
        some = list(run)
        if is_part:
            for part in some:
                columns |= _of_part(found, cast(Part, part), task)
            continue
        known = [one for one in cast(list[Output], some) if _has_column(found, one, task)]
        for name, output, number in in_columns(known, found.coordinates):
            values = found.get(output.name)
            if values is None:  # an error that cannot be estimated
                values = np.full_like(found["mean"], np.nan)
            columns[name] = at(values, number), output.unit
    return columns


def _has_column(found: Summary, output: Output, task: str) -> bool:
    is_there = output.name in found.values or output.name == "mc_error"
    return is_there and output.column is not None and task in output.tasks


def _of_part(found: Summary, part: Part, task: str) -> Columns:
    """The columns of a part, in every predicted row."""
    if part.name not in found.parts or part in GROUPS:
        return {}
    rows, columns = len(found["mean"]), _columns(found.parts[part.name], part.outputs, task)
    return {f"{part.prefix}{k}": (part.in_rows(v, rows), unit) for k, (v, unit) in columns.items()}


def _of_groups(prediction: RowPrediction) -> Columns:
    """As those of series: the sum of a step, and `total_` columns of the sums up to it."""
    names, task = prediction.constants["groups"], prediction.task
    steps, sums = (_columns(prediction.parts[one.name], one.outputs, task) for one in GROUPS)
    deviation, unit = steps.pop("deviation")
    ahead = len(deviation) // len(names)
    return {
        GROUP: ([name for name in names for _ in range(ahead)], "key"),
        "step": (np.tile(np.arange(1, ahead + 1), len(names)), "steps"),
        **steps,
        "total_variance": (deviation**2, unit),
        **{f"{TOTALS.prefix}{name}": column for name, column in sums.items()},
        "time": (np.tile(prediction["time"][:ahead], len(names)), "time"),
    }


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
    if levels := adapted_levels(prediction):
        origin["adapted_levels"] = json.dumps(levels)
    if isinstance(prediction, JointPrediction):
        origin["targets"] = json.dumps(list(prediction.targets))
    return table.replace_schema_metadata({key: str(value) for key, value in origin.items()})


def _column(values: Any, unit: str, prediction: Prediction | None = None) -> "pa.Array[Any]":
    """Values in the type of their unit, so that it is the same in every table."""
    if isinstance(values, list):
        return _of_list(values, unit, {} if prediction is None else prediction.constants)
    if values.ndim > 1:
        return _lists(values)
    if values.dtype.kind in "bi":
        return pa.array(values, pa.bool_() if values.dtype == bool else pa.int64())
    if values.dtype.kind == "M":
        return pa.array(values, pa.timestamp("us", tz="UTC"))
    return _floats(values)


def _of_list(values: list[Any], unit: str, constants: Mapping[str, Any]) -> "pa.Array[Any]":
    match unit:
        case "class":
            return _labels(values, constants["classes"])
        case "action":
            return _labels(values, constants["actions"])
        case "set of classes":
            return _in_lists(values, lambda names: _labels(names, constants["classes"]))
        case "reason":  # values are texts, because columns have several types
            return _in_lists(values, lambda row: pa.array(map(_reason, row), _reason_type()))
    return pa.array(values, pa.string())


def _in_lists(
    rows: Sequence[Sequence[Any]], convert: "Callable[[list[Any]], pa.Array[Any]]"
) -> "pa.Array[Any]":
    """A list per row."""
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    flat = convert(list(chain.from_iterable(rows)))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)


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
    array = _column(np.ascontiguousarray(values).reshape(-1), "")
    for size in reversed(values.shape[1:]):
        array = pa.FixedSizeListArray.from_arrays(array, size)
    return array
