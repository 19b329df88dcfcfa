"""A `Prediction` as an Arrow table: the columns of Parquet results and of Arrow answers.

    numbers   mean, aleatoric_variance, epistemic_variance, total_variance, mc_error,
              lower_0.9 and upper_0.9 for each level, and of conformal intervals
              conformal_lower_0.9 and conformal_upper_0.9
    classes   label, probability_<class> for each class, predictive_entropy, expected_entropy,
              mutual_information, mc_error_<class> for each class

A forecast has a row per step ahead, and its `time` in front.
All end with out_of_distribution and ood_score; with abstained and draws (a list over the samples)
if they were asked for.
What is not finite, or could not be estimated, is null, as in JSON.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from models.features.columns import level_text
from models.prediction.prediction import ClassName, Prediction

ENTROPIES = {
    "predictive_entropy": "total",
    "expected_entropy": "aleatoric",
    "mutual_information": "epistemic",
}

Arrays = dict[str, "pa.Array[Any]"]


def to_table(prediction: Prediction) -> pa.Table:
    """One row per predicted row; the types depend on the model alone, so that tables can be joined.

    A level that was asked for twice has its columns once.
    """
    columns = _times(prediction)
    columns |= _numbers(prediction) if prediction.classes is None else _classes(prediction)
    columns["out_of_distribution"] = pa.array(prediction.out_of_distribution, pa.bool_())
    columns["ood_score"] = _floats(prediction.ood_score)
    if prediction.abstained is not None:
        columns["abstained"] = pa.array(prediction.abstained, pa.bool_())
    if prediction.draws is not None:
        columns["draws"] = _lists(np.moveaxis(prediction.draws, 0, 1))
    return pa.table(columns)


def with_metadata(table: pa.Table, model: str, version: int, prediction: Prediction) -> pa.Table:
    """The table with what gave it in its schema's metadata; each value is text."""
    origin = {
        "model": model,
        "version": version,
        "samples": prediction.samples,
        "seed": prediction.seed,
        "sampler": prediction.sampler,
        "prune": prediction.prune,
    }
    return table.replace_schema_metadata({key: str(value) for key, value in origin.items()})


def _times(prediction: Prediction) -> Arrays:
    times = prediction.times
    if times is None:
        return {}
    is_instant = np.issubdtype(times.dtype, np.datetime64)
    return {"time": pa.array(times, pa.timestamp("us", tz="UTC") if is_instant else pa.float64())}


def _numbers(prediction: Prediction) -> Arrays:
    columns = {"mean": _floats(prediction.mean)}
    for kind in ("aleatoric", "epistemic", "total"):
        columns[f"{kind}_variance"] = _floats(prediction.variance[kind])
    columns["mc_error"] = _floats(errors(prediction))
    for interval in prediction.intervals:
        kind = "" if interval.kind == "credible" else f"{interval.kind}_"
        columns[f"{kind}lower_{interval.level}"] = _floats(interval.lower)
        columns[f"{kind}upper_{interval.level}"] = _floats(interval.upper)
    return columns


def _classes(prediction: Prediction) -> Arrays:
    classes, entropy = prediction.classes or (), prediction.entropy or {}
    columns: Arrays = {"label": _labels(prediction.labels or [], classes)}
    columns |= _per_class("probability", classes, prediction.mean)
    columns |= {name: _floats(entropy[kind]) for name, kind in ENTROPIES.items()}
    return columns | _per_class("mc_error", classes, errors(prediction))


def _per_class(name: str, classes: Sequence[ClassName], values: np.ndarray) -> Arrays:
    return {f"{name}_{level_text(c)}": _floats(values[:, i]) for i, c in enumerate(classes)}


def errors(prediction: Prediction) -> np.ndarray:
    """`mc_error`, NaN where it cannot be estimated: the column is there all the same."""
    missing = np.full_like(prediction.mean, np.nan)
    return missing if prediction.mc_error is None else prediction.mc_error


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
