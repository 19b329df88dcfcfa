"""A prediction → the protocol's output tensors (`models.prediction.declared_outputs`).

Bounds of intervals are together in one tensor, [rows, levels, 2]. A value without an estimate is
NaN. JSON has null for NaN and infinite bounds.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np

from app.schemas.inference_protocol import Datatype, TensorMetadata
from core.exceptions import Invalid
from core.predictions.document import rfc3339
from models.features.columns import level_text
from models.model import TrainedModel
from models.prediction.declared_outputs import (
    CLASS,
    CLASSIFICATION,
    FORECASTING,
    FORECASTS,
    LEVEL,
    REGRESSION,
    ROW_OUTPUTS,
    SAMPLE,
    Declared,
    Output,
    Part,
)
from models.prediction.options import KINDS
from models.prediction.outputs import questions
from models.prediction.outputs.forecasts import GROUP, GROUPS
from models.prediction.outputs.reasons import REASONS
from models.prediction.prediction import Prediction, RowPrediction
from models.prediction.summary import Summary

DRAWS, QUANTILES = "samples", "quantiles"
ABSTAINED = "abstained"
DATATYPES: dict[str, Datatype] = {  # by unit; else FP64
    "class": "BYTES",
    "action": "BYTES",
    "reason": "BYTES",
    "true or false": "BOOL",
    "set of classes": "BOOL",
    "key": "BYTES",
    "time": "BYTES",
    "steps": "INT64",
}
OF_SERIES = ("series", "step")  # only with a key

BOUNDS = {str(one.tensor): one.kind for one in ROW_OUTPUTS if one.along is LEVEL and one.tensor}
"""The kind of the intervals that a tensor has."""

OF_KIND = {
    kind: {
        str(one.tensor)
        for one in questions.outputs()
        if isinstance(one, Output) and one.kind == kind and one.tensor
    }
    for kind in KINDS
}


@dataclass(frozen=True)
class TensorOutput:
    """An output tensor. A size of −1 depends on the request.

    Args:
        outputs: whose values it has, along its last axis if there are several.
        part: that they are of.
        option: that asks for it.
        on_request: whether it must be requested by name.
    """

    shape: tuple[int, ...]
    datatype: Datatype
    outputs: tuple[Output, ...]
    part: Part | None
    option: str
    on_request: bool

    def is_in(self, prediction: RowPrediction) -> bool:
        """Whether the prediction has the tensor."""
        found = self._summary(prediction)
        return found is not None and found.get(self.outputs[0].name) is not None

    def of(self, prediction: RowPrediction) -> np.ndarray:
        """The tensor of a prediction that has it."""
        found = self._summary(prediction)
        assert found is not None
        first = self.outputs[0]
        values = found.get(first.name)
        if len(self.outputs) > 1:
            values = np.stack([found[one.name] for one in self.outputs], axis=-1)
        array = _array(values, first, prediction)
        if self.part not in GROUPS:
            return array
        return array.reshape(len(prediction.constants["groups"]), -1, *array.shape[1:])

    def _summary(self, prediction: RowPrediction) -> Summary | None:
        return prediction if self.part is None else prediction.parts.get(self.part.name)


def outputs(num_classes: int | None, task: str | None = None) -> Mapping[str, TensorOutput]:
    """All outputs of a model; those on request are last.

    Args:
        num_classes: None of numbers.
        task: by default regression, or classification.
    """
    task = task or (REGRESSION if num_classes is None else CLASSIFICATION)
    return _outputs(questions.outputs(), num_classes, task)


@lru_cache(maxsize=64)  # every request reads them, and they take longer than its rows
def _outputs(declared: Declared, num_classes: int | None, task: str) -> Mapping[str, TensorOutput]:
    found: dict[str, TensorOutput] = {}
    for part, one in _in_order(declared):
        if one.tensor is None or task not in one.tasks:
            continue
        name = f"{part.prefix if part else ''}{one.tensor}"
        if name in found:
            known = found[name]
            found[name] = replace(known, outputs=(*known.outputs, one), shape=(*known.shape, 2))
            continue
        option = part.option if part else one.option
        found[name] = TensorOutput(
            _shape(one, part, num_classes),
            DATATYPES.get(one.unit, "FP64"),
            (one,),
            part,
            option,
            one.on_request or bool(option),
        )
    return dict(sorted(found.items(), key=lambda item: item[1].on_request))


_GROUP = Output("groups", "key", FORECASTS, tensor=GROUP, option="totals")


def _in_order(declared: Declared) -> Iterator[tuple[Part | None, Output]]:
    """All outputs with the parts that they are of; intervals and reasons after those of rows."""
    later = [one for one in ROW_OUTPUTS if one.along is LEVEL] + [REASONS]
    asked = [one for one in declared if one not in later]
    place = len([one for one in ROW_OUTPUTS if one not in later])
    for one in (*asked[:place], *later, *asked[place:]):
        if isinstance(one, Output):
            yield None, one
            continue
        if one is GROUPS[0]:
            yield None, _GROUP
        yield from ((one, replace(own, tasks=FORECASTS)) for own in one.outputs)


def _shape(output: Output, part: Part | None, num_classes: int | None) -> tuple[int, ...]:
    classes = () if num_classes is None else (num_classes,)
    groups = (-1,) if part in GROUPS else ()
    if output.along is CLASS:
        return (-1, *classes)
    if output.along is SAMPLE:
        return (-1, -1, *classes)
    return (*groups, -1) if output.along is None else (*groups, -1, -1)


def describe(model: TrainedModel) -> list[TensorMetadata]:
    """All outputs, for a model's metadata."""
    left_out = OF_SERIES if model.series_column is None else ()
    num_classes = None if model.classes is None else len(model.classes)
    return [
        TensorMetadata(name=name, datatype=output.datatype, shape=list(output.shape))
        for name, output in outputs(num_classes, model.task).items()
        if name not in left_out
    ]


def of_option(option: str) -> list[str]:
    """The outputs that an option asks for."""
    for known in (outputs(None), outputs(2), outputs(None, FORECASTING)):
        if names := [name for name, output in known.items() if output.option == option]:
            return names
    return []


def check_names(names: Iterable[str]) -> None:
    """Raise `Invalid` for outputs that no model has, or that are requested twice."""
    known = {**outputs(None), **outputs(2), **outputs(None, FORECASTING)}
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name not in known:
            raise Invalid([(f"/outputs/{i}/name", f"no such output; known are {_listed(known)}")])
        if name in seen:
            raise Invalid([(f"/outputs/{i}/name", f"{name!r} is requested twice")])
        seen.add(name)


def select(prediction: Prediction, names: Sequence[str] | None) -> dict[str, np.ndarray]:
    """The outputs with these names; for None the standard ones.

    Those are all that are not on request. If the parameters ask for intervals, abstaining or other
    answers, they include these, too.

    Raises:
        Invalid: the model does not have an output.
    """
    rows = cast(RowPrediction, prediction)  # texts were refused with their inputs
    known = outputs(None if rows.classes is None else len(rows.classes), rows.task)
    if rows.get("series") is None:
        known = {name: output for name, output in known.items() if name not in OF_SERIES}
    if names is None:
        names = [name for name, output in known.items() if not output.on_request]
        names += [QUANTILES] if rows.intervals else []
        names += [] if rows.get("abstained") is None else [ABSTAINED]
        names += [n for n, one in known.items() if one.option and one.is_in(rows)]
    for i, name in enumerate(names):
        if name not in known:
            raise Invalid([(f"/outputs/{i}/name", f"this model has only {_listed(known)}")])
        kind = BOUNDS.get(name, "credible")
        if kind != "credible" and not known[name].is_in(rows):
            message = f"this version has no {kind} intervals: it was not calibrated"
            raise Invalid([(f"/outputs/{i}/name", message)])
    return {name: _tensor(name, known[name], rows) for name in names}


def _tensor(name: str, output: TensorOutput, prediction: RowPrediction) -> np.ndarray:
    """The tensor, or what stands for values that every prediction may lack.

    Raises:
        Invalid: an option must ask for it.
    """
    if output.is_in(prediction):
        return output.of(prediction)
    if output.option:
        path = f"/parameters/{output.option}"
        raise Invalid([(path, f"the output {name!r} needs it: give it")])
    match name:
        case REASONS.name:
            message = "this version gives no reasons: it was trained by an earlier release"
            raise Invalid([("/outputs", message)])
        case "samples":
            return np.empty((0, *prediction.mean.shape))
        case "mc_error":
            return np.full_like(prediction.mean, np.nan)
        case "quantiles":
            return np.empty((len(prediction.mean), 0, 2))
    return np.zeros(prediction.num_rows, dtype=bool)  # without a bound no row is abstained


def _array(values: Any, output: Output, prediction: RowPrediction) -> np.ndarray:
    match output.unit:
        case "time":
            return _texts(rfc3339(values))
        case "class" | "key" | "action":
            return _texts(values)
        case "reason":
            rows = ([reason.document() for reason in row] for row in values)
            return _objects([json.dumps(row, ensure_ascii=False) for row in rows])
        case "set of classes":
            return np.array([[name in row for name in prediction.classes or ()] for row in values])
    array = np.asarray(values)
    is_first = output.along is not None and output.along.first
    return np.moveaxis(array, 1, 0) if is_first else array


def _texts(values: Iterable[str | float | bool]) -> np.ndarray:
    return _objects([level_text(value) for value in values])


def _objects(values: list[str]) -> np.ndarray:
    return np.array(values, dtype=object)


def _listed(known: Iterable[str]) -> str:
    return ", ".join(known)
