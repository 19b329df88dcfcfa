"""Input tensors → columns: a tensor per feature, or one tensor `inputs` of all number features.

The protocol has no null. NaN in a tensor of floats, or null in JSON, is a missing number if the
training rows of that feature had missing numbers. Otherwise it is refused.
"""

from collections.abc import Collection, Sequence

import numpy as np

from app.schemas.inference_protocol import Datatype, TensorMetadata
from app.serving.inference_protocol.tensors import BOOL, BYTES, NUMBERS, Tensor
from core.exceptions import Invalid
from core.inputs.records import check_names, refuse_texts
from core.inputs.values import FLOAT32_MAX, read_values
from models.features.columns import Columns, InputColumn, without_sentinels

MATRIX = "inputs"
DATATYPES: dict[str, tuple[Datatype, ...]] = {
    "number": NUMBERS,
    "tensor": NUMBERS,
    "boolean": (BOOL,),
    "category": (BYTES,),
    "datetime": (BYTES,),
    "text": (BYTES,),
}
PREFERRED: dict[str, Datatype] = {
    "number": "FP64",
    "tensor": "FP32",
}  # the data type in a model's metadata, if a feature takes several


def describe(features: Sequence[InputColumn]) -> list[TensorMetadata]:
    """A tensor per feature, for a model's metadata. Raises `Invalid` for a language model."""
    refuse_texts(features)
    return [
        TensorMetadata(
            name=f.name,
            datatype=PREFERRED.get(f.type, DATATYPES[f.type][0]),
            shape=[-1, *(f.shape or ())],
        )
        for f in features
    ]


def to_columns(
    tensors: Sequence[Tensor], features: Sequence[InputColumn], unread: Collection[str] = ()
) -> Columns:
    """Arrays by feature, in the convention of `models.features.columns`.

    Args:
        unread: names of tensors that are no features, and may be there all the same.

    Raises:
        Invalid: a feature has no tensor, a tensor is not a feature, or a data type, shape or value
            is wrong. The error names the tensor and, for a value, the row.
    """
    refuse_texts(features)
    given = {tensor.name: tensor for tensor in tensors}
    columns: dict[str, np.ndarray] = {}
    numbers = [feature for feature in features if feature.type == "number"]
    if MATRIX in given and numbers and all(feature.name != MATRIX for feature in features):
        columns = _numbers(given.pop(MATRIX), numbers)
    if twice := [name for name in given if name in columns]:
        raise Invalid([(given[name].path, f"{name!r} is in {MATRIX!r} too") for name in twice])
    required = "required: a tensor of this name"
    check_names([*columns, *given], features, ("inputs",), required, unread)
    for feature in features:
        if feature.name in given:
            columns |= _read(given[feature.name], feature)
    return columns


def _read(tensor: Tensor, feature: InputColumn) -> dict[str, np.ndarray]:
    if tensor.datatype == BYTES and feature.type != "tensor":
        return {feature.name: _texts(tensor, feature)}
    match feature.type:
        case "number":
            return _numbers(tensor, [feature])
        case "tensor":
            return {feature.name: _tensor(tensor, feature)}
        case "boolean":
            _check(tensor, feature.type, 1)
            return {feature.name: tensor.values.reshape(-1).astype(np.float64)}
    _check_datatype(tensor, feature.type)
    return {feature.name: _texts(tensor, feature)}


def _texts(tensor: Tensor, feature: InputColumn) -> np.ndarray:
    """A column of texts, as a file writes them."""
    _check_width(tensor, 1)
    texts = tensor.values.reshape(-1).tolist()
    return read_values(feature, texts, lambda i: f"{tensor.path}/data/{i}")


def _numbers(tensor: Tensor, features: Sequence[InputColumn]) -> dict[str, np.ndarray]:
    """The features of a matrix, in float64 with NaN for missing numbers."""
    _check(tensor, "number", len(features))
    matrix = tensor.values.reshape(-1, len(features)).astype(np.float64, copy=False)
    within = np.abs(matrix) <= FLOAT32_MAX
    if not within.all():
        _check_values(tensor, features, matrix, ~within)
    return {f.name: without_sentinels(matrix[:, i], f.reading) for i, f in enumerate(features)}


def _check_values(
    tensor: Tensor, features: Sequence[InputColumn], matrix: np.ndarray, wrong: np.ndarray
) -> None:
    """Raise `Invalid` for the first wrong value, unless it is a missing one that is allowed."""
    wrong = wrong & ~(np.isnan(matrix) & [feature.missing for feature in features])
    if wrong.any():
        row, column = (int(index[0]) for index in np.nonzero(wrong))
        feature = features[column]
        message = f"must be a finite number within float32 (±3.4e38) for {feature.name!r}"
        if np.isnan(matrix[row, column]):
            message += ", which no training row lacks"
        raise tensor.invalid(message, row)


def _tensor(tensor: Tensor, feature: InputColumn) -> np.ndarray:
    """float32 [rows, …]."""
    _check_datatype(tensor, feature.type)
    if feature.shape is not None and tensor.shape[1:] != feature.shape:
        raise _wrong_shape(tensor, ["rows", *feature.shape])
    with np.errstate(over="ignore"):
        values = tensor.values.astype(np.float32, copy=False)
    flat = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if not flat.all():
        raise tensor.invalid("has NaN, infinity or a number outside float32", int(flat.argmin()))
    return values


def _check(tensor: Tensor, type_: str, width: int) -> None:
    """Check the data type, and the shape: [rows, width], or [rows] if `width` is 1."""
    _check_datatype(tensor, type_)
    _check_width(tensor, width)


def _check_width(tensor: Tensor, width: int) -> None:
    if tensor.shape[1:] != (width,) and (width != 1 or tensor.shape[1:]):
        raise _wrong_shape(tensor, ["rows", width])


def _check_datatype(tensor: Tensor, type_: str) -> None:
    if tensor.datatype not in DATATYPES[type_]:
        texts = () if type_ == "tensor" else (BYTES,)
        known = ", ".join(dict.fromkeys((*DATATYPES[type_], *texts)))
        raise tensor.invalid(f"has datatype {tensor.datatype}: a {type_} feature takes {known}")


def _wrong_shape(tensor: Tensor, expected: Sequence[int | str]) -> Invalid:
    shape = ", ".join(map(str, expected))
    return tensor.invalid(f"has shape {list(tensor.shape)}: the model takes [{shape}]")
