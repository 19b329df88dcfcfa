"""A prediction → the protocol's output tensors.

`samples` are the draws [samples, rows (, classes)], `quantiles` the bounds of the credible
intervals [rows, levels, 2], `conformal_quantiles` those of the conformal ones. What could not be
estimated is NaN, in JSON null, as is an infinite bound there.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from app.schemas.inference_protocol import Datatype, TensorMetadata
from core.exceptions import Invalid
from core.predictions.prediction_table import ENTROPIES, errors
from models.features.columns import level_text
from models.prediction.options import IntervalKind
from models.prediction.prediction import Interval, Prediction

DRAWS, QUANTILES, CONFORMAL = "samples", "quantiles", "conformal_quantiles"
ABSTAINED = "abstained"


@dataclass(frozen=True)
class Output:
    """How a tensor comes from a prediction; −1 in its shape depends on the request."""

    shape: tuple[int, ...]
    of: Callable[[Prediction], np.ndarray]
    datatype: Datatype = "FP64"
    on_request: bool = False


def outputs(num_classes: int | None) -> dict[str, Output]:
    """Every output of a model of numbers (None) or of so many classes; on request come last."""
    if num_classes is None:
        return _of_numbers() | _on_request(())
    return _of_classes(num_classes) | _on_request((num_classes,))


def describe(num_classes: int | None) -> list[TensorMetadata]:
    """All outputs, as the model's metadata tell them."""
    return [
        TensorMetadata(name=name, datatype=output.datatype, shape=list(output.shape))
        for name, output in outputs(num_classes).items()
    ]


def check_names(names: Iterable[str]) -> None:
    """Raise `Invalid` for outputs that no model has, or that are asked for twice."""
    known = outputs(None) | outputs(2)
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name not in known:
            raise Invalid([(f"/outputs/{i}/name", f"no such output; known are {_listed(known)}")])
        if name in seen:
            raise Invalid([(f"/outputs/{i}/name", f"{name!r} is asked for twice")])
        seen.add(name)


def select(prediction: Prediction, names: Sequence[str] | None) -> dict[str, np.ndarray]:
    """The outputs of these names, or all but those on request.

    Quantiles and marks of abstained rows come unasked where the parameters made some.

    Raises:
        Invalid: for an output that this kind of model has not.
    """
    classes = prediction.classes
    known = outputs(None if classes is None else len(classes))
    if names is None:
        names = [name for name, output in known.items() if not output.on_request]
        names += [QUANTILES] if prediction.intervals else []
        names += [] if prediction.abstained is None else [ABSTAINED]
    for i, name in enumerate(names):
        if name not in known:
            raise Invalid([(f"/outputs/{i}/name", f"this model has only {_listed(known)}")])
        if name == CONFORMAL and not _of_kind(prediction, "conformal"):
            message = "this version has no conformal intervals: it was not calibrated"
            raise Invalid([(f"/outputs/{i}/name", message)])
    return {name: known[name].of(prediction) for name in names}


def _of_numbers() -> dict[str, Output]:
    return {
        "mean": Output((-1,), lambda p: p.mean),
        "aleatoric_variance": Output((-1,), lambda p: p.variance["aleatoric"]),
        "epistemic_variance": Output((-1,), lambda p: p.variance["epistemic"]),
        "total_variance": Output((-1,), lambda p: p.variance["total"]),
        "mc_error": Output((-1,), errors),
        QUANTILES: Output((-1, -1, 2), _quantiles("credible"), on_request=True),
        CONFORMAL: Output((-1, -1, 2), _quantiles("conformal"), on_request=True),
    }


def _of_classes(count: int) -> dict[str, Output]:
    entropies = {name: Output((-1,), _entropy(kind)) for name, kind in ENTROPIES.items()}
    return {
        "probabilities": Output((-1, count), lambda p: p.mean),
        **entropies,
        "mc_error": Output((-1, count), errors),
        "labels": Output((-1,), _labels, "BYTES", on_request=True),
    }


def _on_request(classes: tuple[int, ...]) -> dict[str, Output]:
    return {
        "out_of_distribution": Output(
            (-1,), lambda p: p.out_of_distribution, "BOOL", on_request=True
        ),
        "ood_score": Output((-1,), lambda p: p.ood_score, on_request=True),
        ABSTAINED: Output((-1,), _abstained, "BOOL", on_request=True),
        DRAWS: Output((-1, -1, *classes), _draws, on_request=True),
    }


def _quantiles(kind: IntervalKind) -> Callable[[Prediction], np.ndarray]:
    def bounds(prediction: Prediction) -> np.ndarray:
        each = [np.stack([i.lower, i.upper], axis=-1) for i in _of_kind(prediction, kind)]
        return np.stack(each, axis=1) if each else np.empty((len(prediction.mean), 0, 2))

    return bounds


def _of_kind(prediction: Prediction, kind: IntervalKind) -> list[Interval]:
    return [interval for interval in prediction.intervals if interval.kind == kind]


def _entropy(kind: str) -> Callable[[Prediction], np.ndarray]:
    return lambda prediction: (prediction.entropy or {})[kind]


def _labels(prediction: Prediction) -> np.ndarray:
    return np.array([level_text(label) for label in prediction.labels or ()], dtype=object)


def _draws(prediction: Prediction) -> np.ndarray:
    return np.empty((0, *prediction.mean.shape)) if prediction.draws is None else prediction.draws


def _abstained(prediction: Prediction) -> np.ndarray:
    """Nobody asked: no row is left to a human."""
    unasked = np.zeros(prediction.num_rows, dtype=bool)
    return unasked if prediction.abstained is None else prediction.abstained


def _listed(known: Iterable[str]) -> str:
    return ", ".join(known)
