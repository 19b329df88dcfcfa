"""The contents of `model.json`: types and ranges of every field, checked at every read.

Encoders, targets, calibrations and series are the dataclasses of their packages, whose annotations
give the ranges.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal, NotRequired

import numpy as np
from annotated_types import Interval, Len
from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from models.config import FeatureType, Json, StoredConfig
from models.config.ranges import Count, Flag, NotNegative, Number, Text
from models.evaluation.baseline import Baseline
from models.evaluation.calibration import Calibration
from models.evaluation.detector import CLASS_SCORES, NUMBER_SCORES, SURPRISE, Detector
from models.evaluation.path_calibration import PathCalibration
from models.exceptions import CorruptArtifact
from models.expected_scores.expectation import Promise
from models.features.categories import CategoryEncoder, KeyEncoder, LevelEffects
from models.features.columns import ColumnReading, convertible
from models.features.encoders import DatetimeEncoder, Encoder, NumberEncoder, TensorEncoder
from models.features.imputation import Imputed
from models.features.row_groups import Groups
from models.features.seen_columns import SeenColumns
from models.features.targets import NumberTarget, Target
from models.features.texts import TextEncoder
from models.forecasting.classics.classics import Classics
from models.forecasting.holidays import Holidays
from models.forecasting.steps import Spacing
from models.forecasting.unusual import SeenSeries
from models.forecasting.windows import Frame
from models.inference.registry import states
from models.joint.dependence import MAX_TARGETS, Dependence
from models.language.text import Vocabulary
from models.older_versions import upgraded_frame
from models.prediction.default_sampler.record import MeasuredSamplers
from models.prediction.products import Rounding
from models.variant import PrunedBy

_MAX_TENSOR = 2**26  # numbers per row

Pruned = Annotated[float, Interval(ge=0, lt=1)]
Rows = Annotated[int, Interval(ge=0, lt=10**9)]


def _stored_state(name: str) -> str:
    if name not in states():
        raise ValueError(f"is not one of {', '.join(states())}")
    return name


class VariantDocument(TypedDict):
    """The fields of a `Variant`; `state` names the type of the state in its safetensors file."""

    prune: Pruned
    state: Annotated[str, AfterValidator(_stored_state)]
    metrics: Json
    num_bytes: Count
    error_factors: Annotated[dict[Rows, NotNegative], Len(0, 100)]
    calibration: Calibration | PathCalibration | None
    detector: Detector | None
    sobol_factors: NotRequired[Annotated[dict[Rows, NotNegative], Len(0, 100)]]
    output_factors: NotRequired[Annotated[dict[Text, dict[Rows, NotNegative]], Len(0, 100)]]
    promise: NotRequired[Promise | None]
    samplers: NotRequired[MeasuredSamplers | None]
    rounding: NotRequired[Rounding | None]
    by: NotRequired[PrunedBy | None]


class CandidateDocument(TypedDict):
    """A candidate of a selection.

    `score` is its mean score per row, with its standard error. `difference` is `score` minus that
    of the best candidate (0 or negative), with the standard error of the paired difference.
    """

    name: Text
    settings: Json
    score: Number
    standard_error: NotNegative
    difference: Number
    difference_error: NotNegative
    kept: Flag


class SelectionDocument(TypedDict, total=False):
    """What training compared to choose the recipe. Without candidates nothing was compared.

    `metric` is the score, higher is better, on `rows` rows that the candidate did not learn from.
    """

    candidates: Annotated[list[CandidateDocument], Len(0, 1_000)]
    metric: Text
    rows: Count
    note: Text


class SeriesDocument(TypedDict):
    """The fields that only a forecaster has."""

    frame: Annotated[Frame, BeforeValidator(upgraded_frame)]
    spacing: Spacing
    seen: NotRequired[SeenSeries | None]
    classics: NotRequired[Classics | None]
    holidays: NotRequired[Holidays | None]


class ModelDocument(TypedDict):
    """Models of rows have encoders and a target, language models have a vocabulary.

    `stored` are the types that the features' columns have in the data set. A model of several
    targets is the document of the first one, with those of the `others` and, by variant, the
    `dependence` of all.
    """

    format: Literal[1]
    config: StoredConfig
    stored: NotRequired[list[FeatureType]]
    encoders: NotRequired[Annotated[list[Encoder], Len(1, 100_000)]]
    seen: NotRequired[SeenColumns | None]
    imputed: NotRequired[tuple[Imputed | None, ...] | None]
    target: NotRequired[Target]
    groups: NotRequired[Groups]
    vocabulary: NotRequired[Vocabulary]
    series: NotRequired[SeriesDocument]
    default_seed: Annotated[int, Field(strict=True, ge=0, lt=2**31)]
    history: Annotated[list[dict[str, Any]], Len(0, 100_000)]
    notes: Annotated[list[Text], Len(0, 1_000)]
    baselines: NotRequired[Annotated[list[Baseline], Len(0, 10)]]
    recommended_variant: NotRequired[Pruned]
    selection: NotRequired[SelectionDocument]
    readings: NotRequired[Annotated[list[ColumnReading], Len(0, 100_000)]]
    variants: Annotated[list[VariantDocument], Len(1, 17)]
    others: NotRequired["Annotated[list[ModelDocument], Len(1, MAX_TARGETS - 1)]"]
    dependence: NotRequired[Annotated[dict[Pruned, Dependence], Len(1, 17)]]


def parse_document(data: Json) -> ModelDocument:
    """Build the document's dataclasses from JSON.

    Raises:
        CorruptArtifact: with the path of the first field that is wrong.
    """
    try:
        document = _validate()(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise CorruptArtifact(first["msg"], "/".join(["", *map(str, first["loc"])])) from error
    for number, member in enumerate((document, *document.get("others", ()))):
        try:
            if "encoders" in member:
                _check_encoders(member)
            _check_variants(member)
        except CorruptArtifact as error:
            place = f"/others/{number - 1}" if number else ""
            raise CorruptArtifact(error.message, f"{place}{error.path}") from error
    if "others" in document or "dependence" in document:
        _check_together(document)
    return document


@cache
def _validate() -> Callable[[Json], ModelDocument]:
    """The function that checks a document. To build it takes ten times as long as to read one."""
    return TypeAdapter(ModelDocument).validate_python


def _check_together(document: ModelDocument) -> None:
    """Several targets are numbers with different names, and all have the same variants."""
    others, dependence = document.get("others", []), document.get("dependence", {})
    members = [document, *others]
    if len({member["config"].target for member in members}) < len(members) or not others:
        raise CorruptArtifact("must be models of other targets", "/others")
    if any("others" in member or "dependence" in member for member in others):
        raise CorruptArtifact("must be models of one target each", "/others")
    fractions = {variant["prune"] for variant in document["variants"]}
    for i, member in enumerate(members):
        place = f"/others/{i - 1}" if i else ""
        if not isinstance(member.get("target"), NumberTarget):
            raise CorruptArtifact("must be a number", f"{place}/target")
        if {variant["prune"] for variant in member["variants"]} != fractions:
            raise CorruptArtifact("must be those of the first target", f"{place}/variants")
    if dependence.keys() != fractions:
        raise CorruptArtifact("must be of every variant", "/dependence")
    for prune, one in dependence.items():
        _check_dependence(one, len(members), f"/dependence/{prune:g}")


def _check_dependence(one: Dependence, targets: int, path: str) -> None:
    matrix = np.array(one.correlation) if len(set(map(len, one.correlation))) == 1 else np.zeros(0)
    fits = matrix.shape == (targets, targets) and np.array_equal(matrix, matrix.T)
    if not fits or not (np.diag(matrix) == 1).all() or not (np.abs(matrix) <= 1 + 1e-9).all():
        message = f"must be a symmetric matrix of {targets} correlations"
        raise CorruptArtifact(message, f"{path}/correlation")
    if list(one.scores) != sorted(one.scores):
        raise CorruptArtifact("must be in increasing order", f"{path}/scores")
    if one.weights and len(one.weights) != len(one.scores):
        raise CorruptArtifact("must be one for each score", f"{path}/weights")


def _check_encoders(document: ModelDocument) -> None:
    for i, encoder in enumerate(document["encoders"]):
        match encoder:
            case CategoryEncoder(levels=levels) | KeyEncoder(levels=levels) if len({*levels}) < len(
                levels
            ):
                raise CorruptArtifact("has a level twice", f"/encoders/{i}/levels")
            case CategoryEncoder(effects=LevelEffects()):
                _check_effects(encoder, f"/encoders/{i}")
            case TensorEncoder(shape=shape) if math.prod(shape) > _MAX_TENSOR:
                message = f"a tensor may have at most {_MAX_TENSOR} numbers"
                raise CorruptArtifact(message, f"/encoders/{i}/shape")
            case TextEncoder():
                if len(encoder.hashes) != len(encoder.rarity) or not _increases(encoder.hashes):
                    message = "must increase, with a rarity for each"
                    raise CorruptArtifact(message, f"/encoders/{i}/hashes")
            case NumberEncoder():
                _check_quantiles(encoder, f"/encoders/{i}")
            case DatetimeEncoder(instant=instant):
                _check_quantiles(instant, f"/encoders/{i}/instant")
    _check_lengths(document)
    if document["config"].task != "forecasting":  # a forecaster's features follow from its series
        _check_features(document)


def _check_lengths(document: ModelDocument) -> None:
    """There is an encoder, and what training saw, for each column."""
    if len(document["stored"]) != len(document["encoders"]):
        message = f"has {len(document['encoders'])} encoders for {len(document['stored'])} columns"
        raise CorruptArtifact(message, "/encoders")
    seen = document.get("seen")
    if seen is not None and len(seen.columns) != len(document["encoders"]):
        message = f"has {len(seen.columns)} columns for {len(document['encoders'])} encoders"
        raise CorruptArtifact(message, "/seen/columns")
    _check_imputed(document.get("imputed"), document)


def _check_imputed(imputed: tuple[Imputed | None, ...] | None, document: ModelDocument) -> None:
    """There is one for each column; of categories the values are codes that rows may have."""
    if imputed is None:
        return
    encoders = document["encoders"]
    if len(imputed) != len(encoders):
        message = f"has {len(imputed)} columns for {len(encoders)} encoders"
        raise CorruptArtifact(message, "/imputed")
    for i, (one, encoder) in enumerate(zip(imputed, encoders, strict=True)):
        if one is not None and isinstance(encoder, CategoryEncoder):
            codes = range(encoder.absent + 1)
            if any(value not in codes for value in one.values):
                message = f"must be codes of levels, from 0 to {encoder.absent}"
                raise CorruptArtifact(message, f"/imputed/{i}/values")


def _check_quantiles(encoder: NumberEncoder, path: str) -> None:
    """Knots and edges increase, scores do not decrease, and each piece has an edge at each end."""
    if (scores := encoder.scores) is not None:
        if not _increases(scores.knots):
            raise CorruptArtifact("must be in increasing order", f"{path}/scores/knots")
        if len(scores.scores) != len(scores.knots) or list(scores.scores) != sorted(scores.scores):
            message = "must be one number for each knot, in increasing order"
            raise CorruptArtifact(message, f"{path}/scores/scores")
    if (pieces := encoder.pieces) is not None:
        if not _increases(pieces.edges):
            raise CorruptArtifact("must be in increasing order", f"{path}/pieces/edges")
        if len(pieces.centres) != len(pieces.edges) - 1:
            message = f"has {len(pieces.centres)} means for {len(pieces.edges)} edges"
            raise CorruptArtifact(message, f"{path}/pieces/centres")


def _check_effects(encoder: CategoryEncoder, path: str) -> None:
    """The levels with slots come first, each level once, and each has its effects."""
    effects = encoder.effects
    assert effects is not None
    levels = effects.levels
    if len(set(levels)) < len(levels) or levels[: len(encoder.levels)] != encoder.levels:
        message = "must be each level once, those with a slot first"
        raise CorruptArtifact(message, f"{path}/effects/levels")
    if not encoder.coded:
        raise CorruptArtifact("must be true where there are effects", f"{path}/coded")
    if len(effects.noise_ratio) != len(effects.effects):
        message = "must be one number for each output"
        raise CorruptArtifact(message, f"{path}/effects/noise_ratio")
    for name, values in (("certainty", (effects.certainty,)), ("effects", effects.effects)):
        if any(len(each) != len(levels) for each in values):
            message = f"must have a number for each of the {len(levels)} levels"
            raise CorruptArtifact(message, f"{path}/effects/{name}")


def _increases(values: Sequence[float]) -> bool:
    return all(first < second for first, second in pairwise(values))


def _check_features(document: ModelDocument) -> None:
    """Every feature needs a unique name and one encoder of its type."""
    features, encoders = document["config"].features or (), document["encoders"]
    if len(features) != len(encoders):
        message = f"has {len(encoders)} encoders for {len(features)} features"
        raise CorruptArtifact(message, "/encoders")
    if len({feature.name for feature in features}) < len(features):
        raise CorruptArtifact("names a feature twice", "/config/features")
    columns = zip(features, encoders, document["stored"], strict=True)
    for i, (feature, encoder, stored) in enumerate(columns):
        kind = "number" if feature.type == "boolean" else feature.type
        if encoder.kind != kind:
            message = f"is a {encoder.kind} encoder; the feature is of type {feature.type}"
            raise CorruptArtifact(message, f"/encoders/{i}/kind")
        if not convertible(stored, feature.type):
            message = f"a column of type {stored} cannot be read as {feature.type}"
            raise CorruptArtifact(message, f"/stored/{i}")


def _check_variants(document: ModelDocument) -> None:
    fractions = [variant["prune"] for variant in document["variants"]]
    if 0 not in fractions or len(set(fractions)) < len(fractions):
        message = "must have the full posterior, prune 0, and each fraction once"
        raise CorruptArtifact(message, "/variants")
    if document.get("recommended_variant", 0.0) not in fractions:
        raise CorruptArtifact("is not a stored variant", "/recommended_variant")
    is_number = isinstance(document.get("target"), NumberTarget)
    scores = {SURPRISE, *(NUMBER_SCORES if is_number else CLASS_SCORES)}
    for i, variant in enumerate(document["variants"]):
        detector, calibration = variant["detector"], variant["calibration"]
        if detector and detector.score not in scores:
            message = f"is not a score of this task, which has {sorted(scores)}"
            raise CorruptArtifact(message, f"/variants/{i}/detector/score")
        sets = getattr(calibration, "sets", None)
        for name, values in (
            ("residuals", getattr(calibration, "residuals", ())),
            ("sets/scores", () if sets is None else sets.scores),
        ):
            if list(values) != sorted(values):
                path = f"/variants/{i}/calibration/{name}"
                raise CorruptArtifact("must be in increasing order", path)
