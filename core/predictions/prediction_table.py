"""A prediction as an Arrow table: the rows of Parquet results and of Arrow answers.

`models.prediction.outputs` names the columns. What is not finite, or could not be estimated, is
null, as in JSON.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from models.prediction.prediction import ClassName, Prediction


def to_table(prediction: Prediction) -> pa.Table:
    """One row per predicted row; the types depend on the model alone, so that tables can be joined.

    A level that was given twice has its columns once.

    Raises:
        InvalidInput: for a prediction that is no table.
    """
    classes, columns = prediction.classes or (), prediction.columns()
    return pa.table({name: _column(name, v, classes) for name, v in columns.items()})


def with_metadata(table: pa.Table, model: str, version: int, prediction: Prediction) -> pa.Table:
    """The table with its origin in the metadata of its schema; each value is text."""
    origin = {
        "model": model,
        "version": version,
        "samples": prediction.samples,
        "seed": prediction.seed,
        "sampler": prediction.sampler,
        "prune": prediction.prune,
    }
    return table.replace_schema_metadata({key: str(value) for key, value in origin.items()})


def _column(name: str, values: Any, classes: Sequence[ClassName]) -> "pa.Array[Any]":
    if name == "label":
        return _labels(values, classes)
    if name == "draws":
        return _lists(np.moveaxis(values, 0, 1))
    if values.dtype == bool:
        return pa.array(values, pa.bool_())
    if np.issubdtype(values.dtype, np.datetime64):
        return pa.array(values, pa.timestamp("us", tz="UTC"))
    return _floats(values)


def _labels(labels: list[ClassName], classes: Sequence[ClassName]) -> "pa.Array[Any]":
    """Of the type of all classes, whichever of them are here."""
    kinds = {type(c) for c in classes}
    for kind, type_ in ((str, pa.string()), (bool, pa.bool_()), (int, pa.int64())):
        if kinds == {kind} and not _exceeds_int64(classes):
            return pa.array(labels, type_)
    return pa.array([float(label) for label in labels], pa.float64())


def _exceeds_int64(classes: Sequence[ClassName]) -> bool:
    """Whole numbers may: they come from data in float32, which goes to 1e38."""
    return any(not isinstance(c, str) and abs(c) >= 2**63 for c in classes)


def _floats(values: np.ndarray) -> "pa.Array[Any]":
    return pa.array(values, pa.float64(), mask=~np.isfinite(values))


def _lists(values: np.ndarray) -> "pa.Array[Any]":
    """An array's first axis as rows, the others as nested lists of fixed size."""
    array = _floats(np.ascontiguousarray(values).reshape(-1))
    for size in reversed(values.shape[1:]):
        array = pa.FixedSizeListArray.from_arrays(array, size)
    return array
