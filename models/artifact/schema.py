"""What `model.json` may say: types and ranges of every field, as `models.artifact.files` writes
them.

Artifacts of this installation are read without it; one that comes from elsewhere is compared first.
"""

import math
from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Interval, Len
from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from models.config import Json, ModelConfig
from models.evaluation.out_of_distribution import CLASS_SCORES, NUMBER_SCORES
from models.exceptions import CorruptArtifact
from models.features.encoders import MAX_LEVELS
from models.features.targets import MAX_CLASSES

Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-1e300, le=1e300)]
NotNegative = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1e300)]
Positive = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=1e300)]
Probability = Annotated[float, Field(strict=True, ge=0, le=1)]
Count = Annotated[int, Field(strict=True, ge=0, le=2**53)]
Steps = Annotated[int, Field(strict=True, ge=0, le=100_000)]
Side = Annotated[int, Field(strict=True, ge=1, le=2**24)]
Text = Annotated[str, Field(strict=True, max_length=2**16)]
Flag = Annotated[bool, Field(strict=True)]


class Power(TypedDict):
    centre: Number
    scale: Positive
    exponent: Annotated[float, Field(strict=True, ge=0, le=2)]


class InstantDocument(TypedDict):
    mean: Number
    std: NotNegative
    indicator: Flag
    power: Power | None


class NumberDocument(InstantDocument):
    encoder: Literal["number"]
    stored: Literal["number", "boolean"]


class CategoryDocument(TypedDict):
    encoder: Literal["category"]
    stored: Literal["number", "boolean", "category"]
    levels: Annotated[list[Text], Len(0, MAX_LEVELS)]


class DatetimeDocument(TypedDict):
    encoder: Literal["datetime"]
    stored: Literal["datetime"]
    instant: InstantDocument
    cycles: list[Literal["hour", "weekday", "year"]]


class TensorDocument(TypedDict):
    encoder: Literal["tensor"]
    stored: Literal["tensor"]
    shape: Annotated[list[Side], Len(1, 8)]
    mean: Number
    std: NotNegative


EncoderDocument = Annotated[
    NumberDocument | CategoryDocument | DatetimeDocument | TensorDocument,
    Field(discriminator="encoder"),
]


class NumberTargetDocument(TypedDict):
    target: Literal["number"]
    mean: Number
    std: Positive


class ClassTargetDocument(TypedDict):
    target: Literal["class"]
    classes: Annotated[list[Flag | Count | Number | Text], Len(2, MAX_CLASSES)]


class NumberCalibrationDocument(TypedDict):
    variance_scale: Positive
    residuals: Annotated[list[NotNegative], Len(0, 10_000)]
    rows: Count


class ClassCalibrationDocument(TypedDict):
    temperature: Positive
    rows: Count


class DetectorDocument(TypedDict):
    score: Text
    threshold: Number
    false_alarm_rate: Probability


class VariantDocument(TypedDict):
    prune: Annotated[float, Interval(ge=0, lt=1)]
    state: Literal["mean_field", "draws", "dropout", "swag"]
    metrics: Json
    bytes: Count
    error_factors: Annotated[
        dict[Annotated[str, Field(pattern=r"^\d{1,9}$")], NotNegative], Len(0, 100)
    ]
    bfloat16: Flag
    calibration: NumberCalibrationDocument | ClassCalibrationDocument | None
    detector: DetectorDocument | None


class VocabularyDocument(TypedDict):
    level: Literal["word", "character"]
    tokens: Annotated[list[Text], Len(3, 10_000_000)]


class ChangeDocument(TypedDict):
    mean: Number
    std: Positive


class FrameDocument(TypedDict):
    context: Steps
    season: Steps
    is_log: Flag
    floor: NotNegative
    usual: Positive
    spread: Positive
    change: ChangeDocument


class SpacingDocument(TypedDict):
    unit: Literal["month", "microsecond", "number"]
    step: Positive
    month_end: Flag
    is_regular: Flag


class SeriesDocument(TypedDict):
    frame: FrameDocument
    spacing: SpacingDocument


class ModelDocument(TypedDict):
    format: Literal[1]
    config: ModelConfig
    encoders: NotRequired[Annotated[list[EncoderDocument], Len(1, 100_000)]]
    target: NotRequired[
        Annotated[NumberTargetDocument | ClassTargetDocument, Field(discriminator="target")]
    ]
    vocabulary: NotRequired[VocabularyDocument]
    series: NotRequired[SeriesDocument]
    default_seed: Annotated[int, Field(strict=True, ge=0, lt=2**31)]
    history: Annotated[list[dict[str, Any]], Len(0, 100_000)]
    notes: Annotated[list[Text], Len(0, 1_000)]
    variants: Annotated[list[VariantDocument], Len(1, 17)]


def check_document(data: Json) -> None:
    """Raise `CorruptArtifact` with the path of the first field that is wrong."""
    try:
        TypeAdapter(ModelDocument).validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise CorruptArtifact(first["msg"], "/".join(["", *map(str, first["loc"])])) from error
    _check_features(data)
    _check_variants(data)


def _check_features(data: Json) -> None:
    """A feature per encoder, of its kind, under a name of its own; levels and classes once."""
    if "encoders" not in data:
        return
    kinds = {"boolean": "number"}
    features = data["config"].get("features") or []
    for i, encoder in enumerate(data["encoders"]):
        if len(set(encoder.get("levels", ()))) < len(encoder.get("levels", ())):
            raise CorruptArtifact("holds a level twice", f"/encoders/{i}/levels")
        if encoder["encoder"] == "tensor" and math.prod(encoder["shape"]) > 2**26:
            raise CorruptArtifact("is larger than any tensor that is read", f"/encoders/{i}/shape")
    if data["config"].get("task") == "forecasting":
        return
    if len(features) != len(data["encoders"]):
        message = f"has {len(data['encoders'])} for {len(features)} features"
        raise CorruptArtifact(message, "/encoders")
    if len({feature["name"] for feature in features}) < len(features):
        raise CorruptArtifact("names a feature twice", "/config/features")
    for i, (feature, encoder) in enumerate(zip(features, data["encoders"], strict=True)):
        if kinds.get(feature["type"], feature["type"]) != encoder["encoder"]:
            message = f"is for another type than the feature's, {feature['type']}"
            raise CorruptArtifact(message, f"/encoders/{i}/encoder")


def _check_variants(data: Json) -> None:
    fractions = [variant["prune"] for variant in data["variants"]]
    if 0 not in fractions or len(set(fractions)) < len(fractions):
        raise CorruptArtifact("must hold the full posterior, prune 0, and each once", "/variants")
    scores = NUMBER_SCORES if data.get("target", {}).get("target") == "number" else CLASS_SCORES
    for i, variant in enumerate(data["variants"]):
        detector, found = variant["detector"], variant["calibration"] or {}
        if detector and detector["score"] not in scores:
            raise CorruptArtifact("is no score of this task", f"/variants/{i}/detector/score")
        residuals = found.get("residuals", [])
        if residuals != sorted(residuals):
            raise CorruptArtifact("do not increase", f"/variants/{i}/calibration/residuals")
