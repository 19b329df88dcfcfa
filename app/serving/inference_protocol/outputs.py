"""A prediction → the protocol's output tensors, as `models.prediction.outputs` lists them.

`samples` are the draws [samples, rows (, classes)], `quantiles` the bounds of the credible
intervals [rows, levels, 2], `conformal_quantiles` and `adaptive_quantiles` those of the conformal
and the adaptive intervals. A value without an estimate is NaN. JSON has null for NaN and infinite
bounds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import cast

import numpy as np

from app.schemas.inference_protocol import Datatype, TensorMetadata
from core.exceptions import Invalid
from core.predictions.document import rfc3339
from models.features.columns import level_text
from models.model import TrainedModel
from models.prediction.answers.answer import Question
from models.prediction.answers.contributions import CONTRIBUTIONS, TENSORS
from models.prediction.answers.questions import QUESTIONS
from models.prediction.answers.reasons import REASONS
from models.prediction.options import IntervalKind
from models.prediction.outputs import ROW_OUTPUTS, Output
from models.prediction.prediction import Interval, Prediction, RowPrediction

DRAWS, QUANTILES = "samples", "quantiles"
BOUNDS: dict[str, IntervalKind] = {  # the kind of the intervals that an output has
    QUANTILES: "credible",
    "conformal_quantiles": "conformal",
    "adaptive_quantiles": "adaptive",
}
OF_KIND = {
    "credible": {QUANTILES, "set"},
    "conformal": {"conformal_quantiles", "conformal_set"},
    "adaptive": {"adaptive_quantiles"},
}
ABSTAINED = "abstained"
DATATYPES: dict[str, Datatype] = {  # by unit; else FP64
    "class": "BYTES",
    "true or false": "BOOL",
    "key": "BYTES",
    "time": "BYTES",
    "steps": "INT64",
}
FORECASTING = "forecasting"
OF_SERIES = ("series", "step")  # only with a key


@dataclass(frozen=True)
class TensorOutput:
    """An output tensor. A size of −1 depends on the request.

    Args:
        of: the tensor of a prediction.
        on_request: whether it must be requested by name.
    """

    shape: tuple[int, ...]
    of: Callable[[RowPrediction], np.ndarray]
    datatype: Datatype = "FP64"
    on_request: bool = False


@lru_cache(maxsize=64)  # every request reads them, and they take longer than its rows
def outputs(num_classes: int | None, task: str | None = None) -> Mapping[str, TensorOutput]:
    """All outputs of a model; those on request are last.

    Args:
        num_classes: None of numbers.
        task: by default regression, or classification.
    """
    task = task or ("regression" if num_classes is None else "classification")
    found = {
        output.tensor or output.name: _tensor(output, num_classes)
        for output in ROW_OUTPUTS
        if task in output.tasks
    }
    if num_classes is None:
        bounds = partial(TensorOutput, (-1, -1, 2), on_request=True)
        found |= {name: bounds(_quantiles(kind)) for name, kind in BOUNDS.items()}
    found[REASONS] = TensorOutput((-1,), _reasons, "BYTES", on_request=True)
    found |= {
        name: _answer(question, name, shape, task)
        for question in QUESTIONS
        if task in question.tasks
        for name, shape in question.tensors.items()
        if question.only.get(name, task) == task
    }
    found |= {name: _contributions(name, shape) for name, shape in TENSORS.items()}
    return dict(sorted(found.items(), key=lambda item: item[1].on_request))


def describe(model: TrainedModel) -> list[TensorMetadata]:
    """All outputs, for a model's metadata."""
    left_out = OF_SERIES if model.series_column is None else ()
    num_classes = None if model.classes is None else len(model.classes)
    return [
        TensorMetadata(name=name, datatype=output.datatype, shape=list(output.shape))
        for name, output in outputs(num_classes, model.task).items()
        if name not in left_out
    ]


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

    Those are all that are not on request. If the parameters ask for intervals or abstaining, they
    include `quantiles` or `abstained`, too.

    Raises:
        Invalid: the model does not have an output.
    """
    rows = cast(RowPrediction, prediction)  # texts were refused with their inputs
    classes = rows.classes
    task = None if rows.times is None else FORECASTING
    known = outputs(None if classes is None else len(classes), task)
    if rows.series is None:
        known = {name: output for name, output in known.items() if name not in OF_SERIES}
    if names is None:
        names = [name for name, output in known.items() if not output.on_request]
        names += [QUANTILES] if rows.intervals else []
        names += [] if rows.abstained is None else [ABSTAINED]
        asked = [answer for name, answer in rows.answers.items() if name != REASONS]
        names += [name for answer in asked for name in answer.tensors()]
    for i, name in enumerate(names):
        if name not in known:
            raise Invalid([(f"/outputs/{i}/name", f"this model has only {_listed(known)}")])
        if name in BOUNDS and name != QUANTILES and not _of_kind(rows, BOUNDS[name]):
            message = f"this version has no {BOUNDS[name]} intervals: it was not calibrated"
            raise Invalid([(f"/outputs/{i}/name", message)])
    return {name: known[name].of(rows) for name in names}


def _tensor(output: Output, num_classes: int | None) -> TensorOutput:
    classes = () if num_classes is None else (num_classes,)
    shape = (-1, *classes) if output.per_class else (-1,)
    return TensorOutput(
        (-1, -1, *classes) if output.name == "draws" else shape,
        lambda prediction: _array(output, prediction),
        DATATYPES.get(output.unit, "FP64"),
        output.on_request,
    )


def _array(output: Output, prediction: RowPrediction) -> np.ndarray:
    values = output.values(prediction)
    if output.unit in ("class", "key"):
        return _texts(values or ())
    if output.unit == "time":
        return _texts(rfc3339(values))
    if values is not None:
        return np.asarray(values)
    if output.name == "draws":
        return np.empty((0, *prediction.mean.shape))
    if output.name == "mc_error":
        return np.full_like(prediction.mean, np.nan)
    return np.zeros(prediction.num_rows, dtype=bool)  # without a bound no row is abstained


def _contributions(name: str, shape: tuple[int, ...]) -> TensorOutput:
    def of(prediction: RowPrediction) -> np.ndarray:
        if CONTRIBUTIONS not in prediction.answers:
            raise Invalid([("/parameters/explain", f"the output {name!r} needs it: give it")])
        return prediction.answers[CONTRIBUTIONS].tensors()[name]

    return TensorOutput(shape, of, on_request=True)


def _answer(question: Question, name: str, shape: tuple[int, ...], task: str) -> TensorOutput:
    """A tensor of an answer that an option asks for."""
    member = question.member or question.name
    is_text = name in question.texts.get(task, ())

    def of(prediction: RowPrediction) -> np.ndarray:
        found = prediction.answers.get(member)
        if found is None or name not in (tensors := found.tensors()):
            path = f"/parameters/{question.name}"
            raise Invalid([(path, f"the output {name!r} needs it: give it")])
        return _texts(tensors[name].tolist()) if is_text else tensors[name]

    datatype: Datatype = "BYTES" if is_text else "BOOL" if name in question.flags else "FP64"
    return TensorOutput(shape, of, datatype, on_request=True)


def _texts(values: Iterable[str | float | bool]) -> np.ndarray:
    return np.array([level_text(value) for value in values], dtype=object)


def _reasons(prediction: RowPrediction) -> np.ndarray:
    """The reasons of each row as JSON."""
    if REASONS not in prediction.answers:
        message = "this version gives no reasons: it was trained by an earlier release"
        raise Invalid([("/outputs", message)])
    return prediction.answers[REASONS].tensors()[REASONS]


def _quantiles(kind: IntervalKind) -> Callable[[RowPrediction], np.ndarray]:
    def bounds(prediction: RowPrediction) -> np.ndarray:
        each = [np.stack([i.lower, i.upper], axis=-1) for i in _of_kind(prediction, kind)]
        return np.stack(each, axis=1) if each else np.empty((len(prediction.mean), 0, 2))

    return bounds


def _of_kind(prediction: RowPrediction, kind: IntervalKind) -> list[Interval]:
    return [interval for interval in prediction.intervals if interval.kind == kind]


def _listed(known: Iterable[str]) -> str:
    return ", ".join(known)
