"""Models, versions and aliases in requests and responses."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field, model_validator

from app.schemas.common import DatasetId, Json, Owner, Reference, Request, Response, is_none
from core.jobs.specs import MAX_ACQUIRED
from core.registry.registry import Version
from models.evaluation.baseline import BaselineKind
from models.prediction.options import Sampler
from models.variant import PrunedBy

Label = str | bool | int | float


class FeatureResponse(Response):
    """An input column and its type."""

    name: str
    type: str


class DetectorResponse(Response):
    """Flags rows as out of distribution if their `score` is above the threshold."""

    score: str
    threshold: float
    false_alarm_rate: float = Field(
        description="share of rows like those of training that it flags"
    )
    rows: int = Field(0, description="held-out rows that give the threshold; 0: not known")


class RoundingResponse(Response):
    """Shifts by products in bfloat16 beside the errors of 100 independent samples.

    Root mean squares over held-out rows, in predictive standard deviations.
    """

    mean: float = Field(description="shift of the mean; of classes, of the probabilities")
    deviation: float = Field(description="shift of the predictive standard deviation")
    error_of_mean: float
    error_of_deviation: float
    bfloat16: bool = Field(
        description="whether both shifts are at most a tenth of the errors: then bfloat16 is used "
        "on processors that are faster by it"
    )
    weights: int = Field(description="of the smallest layer that is rounded")


class AutoResponse(Response):
    """What answers predictions without `samples`, as it was measured on held-out rows."""

    sampler: Sampler
    samples: int = Field(description="0 of `moments`")
    nodes: int = Field(description="of `moments`, for the distribution of the outputs; else 0")
    errors: dict[str, float] = Field(
        description="by output: root mean square ÷ that of 100 independent samples; at most 1"
    )
    bias: dict[str, float] = Field(
        description="by output: a bound, as a share of the predictive standard deviation, of "
        "variances as a share of its square, of entropies in nats"
    )
    cost: float = Field(description="counted operations ÷ those of 100 samples")
    rows: int


class VariantResponse(Response):
    """A version with a fraction `prune` of its weights removed."""

    prune: float
    by: PrunedBy | None = Field(
        None,
        exclude_if=is_none,
        description="what was ranked and removed: single weights, or whole units, which leaves a "
        "smaller and faster network; absent for the full model",
    )
    num_weights: int
    bytes: int
    calibration: Json | None = Field(
        None,
        description="variance_scale or temperature, and the number of rows of its fit; of "
        "classes also `sets`: the rows that are ranked for conformal sets, and the penalty of "
        "classes beyond the most probable `free_classes`; of a "
        "forecaster also variance_scale_last_step, origins and independent_errors, the number of "
        "independent errors that tell as much as those of the forecasts",
    )
    metrics: Json
    out_of_distribution: DetectorResponse | None = Field(None, exclude_if=is_none)
    auto: AutoResponse | None = Field(
        None,
        exclude_if=is_none,
        description="what answers predictions without `samples`; absent where nothing cheaper is "
        "as exact as 100 samples",
    )
    rounding: RoundingResponse | None = Field(
        None,
        exclude_if=is_none,
        description="by products in bfloat16; absent where no layer is large enough for them",
    )


class BaselineResponse(Response):
    """A simple method that learned from the same rows and was scored on the same held-out rows."""

    kind: BaselineKind
    metrics: Json = Field(description="named as those of the version")
    seconds: float = Field(description="that it took to learn and to predict")
    rows: int = Field(description="that it learned from: a large table is thinned evenly")
    advantage: float | None = Field(
        None,
        description="by how much the full model is better, mean over the held-out rows: CRPS of "
        "numbers, log likelihood of classes; below 0 the simple method is better",
    )
    advantage_error: float | None = Field(
        None, description="the standard error of this paired difference"
    )


class CandidateResponse(Response):
    """A candidate that training compared on rows that it had not learned from."""

    name: str
    settings: Json
    score: float = Field(description="mean per row, in the target's unit; higher is better")
    standard_error: float
    difference: float = Field(description="its score minus that of the best candidate")
    difference_error: float = Field(description="the standard error of the paired difference")
    kept: bool = Field(description="whether it is part of the version")


class SelectionResponse(Response):
    """What training compared to choose the recipe."""

    candidates: list[CandidateResponse] = Field(default=[])
    metric: str = "log_likelihood"
    rows: int = Field(default=0, description="on which the candidates were compared")
    note: str = ""


class SharedResponse(Response):
    """A feature that shares importance with another, and their association, above 0.7."""

    name: str
    value: float = Field(description="|r|, Cramér's V, or the correlation ratio")


class FeatureImportance(Response):
    """The mean size of a feature's contributions to each part, with standard errors over rows."""

    name: str
    mean: float = Field(
        description="in units of the target; of classes the probability that the feature moves"
    )
    mean_error: float
    aleatoric: float = Field(description="in squared units of the target; of classes in nats")
    aleatoric_error: float
    epistemic: float = Field(description="as aleatoric")
    epistemic_error: float
    correlated_with: list[SharedResponse]


class ImportanceResponse(Response):
    """The importance of features on held-out rows, the greatest for the mean first."""

    rows: int = Field(default=0, description="that were explained; 0 if none were")
    features: list[FeatureImportance] = Field(default=[], description="50 at most")


class TargetResponse(Response):
    """One of several targets: its network and what it reaches on held-out rows."""

    target: str
    likelihood: str | Json | None = None
    network: Json
    metrics: Json
    variants: list[VariantResponse]
    baselines: list[BaselineResponse]
    notes: list[str]


class JointlyResponse(Response):
    """Several targets and how they depend on each other, beside what their features say."""

    targets: list[TargetResponse] = Field(description="in the order of the request")
    correlation: list[list[float]] = Field(
        description="of the targets' normal scores on calibration rows: a Gaussian copula"
    )
    rows: int = Field(description="calibration rows; 0: the dependence is not known")


class ForecastMember(Response):
    """A model whose sample paths are part of a forecast."""

    name: str
    weight: float


class OriginResponse(Response):
    """The version that was exported, as its archive describes it."""

    model: str
    version: int
    dataset: str
    job: str
    created_at: str


class ImportedResponse(Response):
    """The origin of an imported version; null if it was trained without a service."""

    origin: OriginResponse | None
    bytes: int


class _OfVersion(Response):
    """A response made from a `Version`: from its fields and those of its description."""

    @model_validator(mode="before")
    @classmethod
    def _join(cls, version: object) -> object:
        return version.description | vars(version) if isinstance(version, Version) else version


class VersionResponse(_OfVersion):
    """One immutable version. Its `metrics` are of held-out rows."""

    model: str
    version: int
    aliases: tuple[str, ...]
    task: str
    features: list[FeatureResponse]
    target: str
    classes: list[Label] | None = Field(None, exclude_if=is_none)
    likelihood: str | Json | None = None
    network: Json
    method: Json
    training: Json
    language: Json | None = Field(None, exclude_if=is_none)
    vocabulary_size: int | None = Field(None, exclude_if=is_none)
    forecast: Json | None = Field(None, exclude_if=is_none)
    forecast_members: list[ForecastMember] | None = Field(
        None,
        exclude_if=is_none,
        description="what forecasts are mixtures of: the network, exponential smoothing, "
        "autoregressions; the weights sum to 1",
    )
    num_weights: int
    metrics: Json = Field(
        description="on held-out rows; of up to 50 classes also `by_class` (recall, precision, "
        "average_precision and auroc of each, and how often its sets contain it) and `confusion` "
        "(`counts`, a row per true class); `set_coverage` and `set_size`, and both with "
        "`conformal_`, are those of sets of classes by level"
    )
    variants: list[VariantResponse]
    baselines: list[BaselineResponse] = Field(
        [], description="what simple methods reach on the same rows; empty if none was fitted"
    )
    recommended_variant: float = Field(
        0.0, description="the `prune` of the variant with the clearly best score, else 0"
    )
    selection: SelectionResponse = SelectionResponse()
    importance: ImportanceResponse = ImportanceResponse()
    notes: list[str]
    joint: JointlyResponse | None = Field(
        None,
        exclude_if=is_none,
        description="several targets only; the fields above are of the first one, and its metrics "
        "have `joint_coverage`: how often all targets lie in their joint intervals, by level",
    )
    imported: ImportedResponse | None = Field(None, exclude_if=is_none)
    dataset: str
    job: str
    created_at: datetime


class VersionSummary(_OfVersion):
    """A version in the list of its model."""

    version: int
    aliases: tuple[str, ...]
    task: str
    num_weights: int
    metrics: Json
    dataset: str
    job: str
    created_at: datetime


class ModelSummary(_OfVersion):
    """A model in the list of models, with its newest version."""

    name: str = Field(validation_alias="model")
    owner: Owner = Field(
        None, exclude_if=is_none, description="the owner, unless it belongs to everybody"
    )
    version: int = Field(description="the newest version")
    task: str
    target: str
    num_weights: int
    created_at: datetime


class ModelResponse(Response):
    """A model: its versions, newest first, and the version of each alias."""

    name: str
    owner: Owner = Field(
        None, exclude_if=is_none, description="the owner, unless it belongs to everybody"
    )
    aliases: dict[str, int]
    versions: list[VersionSummary]

    @classmethod
    def of(cls, name: str, versions: Sequence[Version]) -> "ModelResponse":
        """The model with these versions, which are newest first."""
        return cls(
            name=name,
            owner=versions[0].owner,
            aliases={alias: v.version for v in versions for alias in v.aliases},
            versions=[VersionSummary.model_validate(version) for version in versions],
        )


class AliasRequest(Request):
    """The version of an alias."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1)]


class AcquireRequest(Request):
    """A version (by default the newest), rows without labels, and how many to choose."""

    version: Reference | None = None
    dataset: DatasetId
    k: Annotated[int, Field(ge=1, le=MAX_ACQUIRED, description="number of rows to choose")]
    batch: bool = Field(
        True,
        description="choose the rows for what their labels tell together, so that like rows are "
        "chosen once; false: for what each tells by itself",
    )
    prune: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0


class EvaluateRequest(Request):
    """A version (by default the newest) and the labelled data set on which it is evaluated."""

    version: Reference | None = None
    dataset: DatasetId
    prune: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
