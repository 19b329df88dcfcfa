"""A prediction as the members of a JSON object (`models.prediction.declared_outputs`)."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from models.joint.answer import JointPrediction
from models.prediction.declared_outputs import LEVEL, MC_ERRORS, Declared, Output, Part, at, of_task
from models.prediction.outputs.forecasts import GROUPS
from models.prediction.prediction import Prediction, RowPrediction
from models.prediction.summary import Summary

Json = dict[str, Any]


def to_document(prediction: Prediction) -> Json:
    """The members of the answer of `POST /predict`, from the variant to the outputs.

    Arrays stay arrays, and some values are dataclasses: `asdict` has their members.
    """
    document: Json = {
        "prune": prediction.prune,
        "samples": prediction.samples,
        "seed": prediction.seed,
        "sampler": prediction.sampler,
    }
    document |= _members(prediction, prediction.outputs, prediction.task)
    if isinstance(prediction, JointPrediction):
        document["targets"] = {
            name: _members(one, one.outputs, one.task) for name, one in prediction.targets.items()
        }
    return document


def _members(found: Summary, outputs: Declared, task: str) -> Json:
    """The outputs of a prediction or of a part of one."""
    document: Json = {}
    records: dict[tuple[str, str | None, int], Json] = {}
    names = frozenset((*found.values, *found.constants, *found.parts))
    for one in _in_json(outputs, task, names):
        if isinstance(one, Part):
            _add_part(document, one, found, task)
        elif one is MC_ERRORS:
            if isinstance(found, RowPrediction) and (errors := found.mc_errors):
                document[one.name] = {name: _contiguous(v) for name, v in errors.items()}
        elif one.records:
            _add_records(document, records, one, found)
        else:
            _set(document, one.path, _ready(found.get(one.name), one))
    return document


@lru_cache(maxsize=1024)  # of the outputs that options ask for
def _in_json(outputs: Declared, task: str, names: frozenset[str]) -> Declared:
    """What JSON has of a prediction with values of these names."""
    own = of_task(outputs, task)
    return tuple(
        one
        for one in outputs
        if isinstance(one, Part) or (one in own and one.member is not None)
        if one.name in names or one.is_nullable or one is MC_ERRORS
    )


def _add_records(
    document: Json,
    records: dict[tuple[str, str | None, int], Json],
    output: Output,
    found: Summary,
) -> None:
    """Add an output to the objects of a list, each of which has a coordinate.

    Args:
        records: those that the document has, by list, kind and number of the coordinate.
    """
    *outer, name = output.records.split(".")
    each = _inside(document, outer).setdefault(name, [])
    values, along = found.get(output.name), output.along
    if values is None or along is None:
        return
    for i, coordinate in enumerate(found.coordinates[along]):
        key = (output.records, output.kind, i)
        if key not in records:
            kind = {} if output.kind is None else {"kind": output.kind}
            records[key] = {along.name: coordinate, **kind}
            each.append(records[key])
        own = values[i] if output.name in found.constants else at(values, i)
        _set(records[key], output.path, _ready(own, output))


def _add_part(document: Json, part: Part, found: Summary, task: str) -> None:
    of, path = found.parts[part.name], part.member.split(".")
    if part not in GROUPS:
        _inside(document, path).update(_members(of, part.outputs, task))
        return
    *outer, name, own = path
    groups, members = found.constants["groups"], found.constants["members"]
    each = _inside(document, outer).setdefault(
        name, [{"group": g, "series": m} for g, m in zip(groups, members, strict=True)]
    )
    ahead = len(of["mean"]) // len(groups)
    for i, one in enumerate(each):
        rows = of.of_rows(slice(i * ahead, (i + 1) * ahead))
        one[own] = _members(rows, part.outputs, task)


def _inside(document: Json, path: Sequence[str]) -> Json:
    for name in path:
        document = document.setdefault(name, {})
    return document


def _set(document: Json, path: Sequence[str], value: Any) -> None:
    _inside(document, path[:-1])[path[-1]] = value


def _ready(values: Any, output: Output) -> Any:
    """Values for orjson: arrays are contiguous in memory, times are RFC 3339 texts."""
    if output.unit == "reason":
        return [[reason.document() for reason in row] for row in values]
    if not isinstance(values, np.ndarray):
        return values
    if output.along is not None and output.along.first:
        values = np.moveaxis(values, 1, 0)
    if output.along is not None and output.along.flat:
        values = values.reshape(-1)
    if output.unit == "time":
        return rfc3339(values)
    return values.tolist() if values.dtype.kind == "O" else _contiguous(values)


def _contiguous(values: np.ndarray) -> np.ndarray:
    return values if values.flags.c_contiguous else np.ascontiguousarray(values)


def adapted_levels(prediction: Prediction) -> dict[str, float]:
    """The level at which each adaptive interval is given, by the level that was asked for."""
    adapted = prediction.constants.get("adapted_level", ())
    return dict(zip(map(str, prediction.coordinates.get(LEVEL, ())), adapted, strict=False))


def rfc3339(times: np.ndarray) -> list[Any]:
    """Datetimes as texts; times that are numbers stay so."""
    if not np.issubdtype(times.dtype, np.datetime64):
        return list(times.tolist())
    return [moment.isoformat() + "Z" for moment in times.astype("datetime64[us]").tolist()]
