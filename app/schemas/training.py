"""The body of `POST /train`: the settings of `models.config.ModelConfig` at the top level."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Annotated, Any, Self

from annotated_types import Interval
from pydantic import AfterValidator, Field, PrivateAttr, ValidationInfo, model_validator

from app.schemas.common import DatasetId, Json, ModelName, Request
from core.jobs.specs import Alias, Metadata
from core.names import dotted_paths
from models.config import (
    ColumnName,
    FeatureConfig,
    ForecastConfig,
    GivenLikelihood,
    InputsConfig,
    LanguageConfig,
    MethodConfig,
    ModelConfig,
    NetworkConfig,
    OutOfDistributionConfig,
    Pruning,
    SupportConfig,
    Task,
    TrainingConfig,
)
from models.config.model import Bound
from models.features.columns import ColumnProfile
from models.joint.dependence import MAX_TARGETS

_DEFAULTS = ModelConfig(target="y")
Features = tuple[ColumnName | FeatureConfig, ...]
SETTINGS = {field.name for field in fields(ModelConfig)}
_COPIED = SETTINGS - {"features", "method", "out_of_distribution", "support", "target"}


class TargetRequest(Request):
    """A number target with its possible values; what is not given is learned from the rows."""

    name: ColumnName
    lower: Bound | None = Field(None, description="the smallest possible value")
    upper: Bound | None = Field(None, description="the largest possible value")
    integer: bool | None = Field(None, description="whether all values are whole numbers")


class InlineData(Request):
    """A small data set inside the request. Upload larger ones to `POST /datasets`."""

    columns: dict[ColumnName, list[Any]] = Field(min_length=1)


def _not_empty(features: Features) -> Features:
    if not features:
        raise ValueError("must name at least one column; leave it out for all")
    return features


class RecipeRequest(Request):
    """A training without its method. `model`, `target` and `dataset` or `data` are required."""

    model: ModelName
    dataset: DatasetId | None = None
    data: InlineData | None = None
    target: ColumnName | TargetRequest = Field(
        description="a column; {name, lower, upper, integer} bounds the predictions of a number"
    )
    features: Annotated[Features, AfterValidator(_not_empty)] | None = Field(
        None, description="default: all other columns; {name, type} overrides a type"
    )
    task: Task | None = None
    likelihood: GivenLikelihood = Field(
        None, description="{kind, components, scale} says more than a name"
    )
    weight: ColumnName | None = None
    inputs: InputsConfig = Field(
        _DEFAULTS.inputs,
        description="`boosted`: whether networks of a table read the predictions of boosted "
        "trees; null: if they gain on the rows",
    )
    network: NetworkConfig = _DEFAULTS.network
    members: Annotated[int, Interval(ge=1, le=32)] | None = Field(
        None, description="networks whose mixture predicts; null: by the recipe"
    )
    training: TrainingConfig = _DEFAULTS.training
    pruning: Pruning | None = None
    language: LanguageConfig | None = None
    forecast: ForecastConfig | None = Field(
        None, description="forecasting: the column of time, and the steps ahead and back"
    )
    metadata: Metadata = Field(default_factory=dict)
    _sent: Json = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _keep_document(self, info: ValidationInfo) -> Self:
        """Keep what was sent: a parsed request does not distinguish it from defaults.

        In the body of a schedule it is the member `train`.
        """
        document = info.context or {}
        self._sent = document.get("train", document)
        return self

    def sent(self, dataset: str) -> Json:
        """The body as sent, with the data set in place of inline rows."""
        return {k: v for k, v in self._sent.items() if k != "data"} | {"dataset": dataset}

    def given(self, method: Json | None = None) -> tuple[str, ...]:
        """Dotted paths of the settings that the request contains and that are not null."""
        sent = {name: value for name, value in self._sent.items() if name in SETTINGS}
        paths = dotted_paths(sent if method is None else sent | {"method": method})
        return tuple(path for path, value in paths.items() if value is not None)

    def config(self, columns: Sequence[ColumnProfile], method: MethodConfig) -> ModelConfig:
        """The configuration as sent. `models.training.recipe.resolve` fills in the rest."""
        settings: Json = {name: getattr(self, name) for name in _COPIED}
        features = _feature_configs(self.features, columns)
        return ModelConfig(
            **settings,
            target=self.target_name,
            support=self.support,
            features=features,
            method=method,
        )

    @property
    def target_name(self) -> str:
        return self.target.name if isinstance(self.target, TargetRequest) else self.target

    @property
    def support(self) -> SupportConfig | None:
        """The possible values; None if the request has only the target's name."""
        if not isinstance(self.target, TargetRequest):
            return None
        given = self.target.model_dump(exclude={"name"})
        return SupportConfig(**given) if any(v is not None for v in given.values()) else None


Target = ColumnName | TargetRequest


def _few(targets: tuple[Target, ...]) -> tuple[Target, ...]:
    if not 1 <= len(targets) <= MAX_TARGETS:
        raise ValueError(f"must be one to {MAX_TARGETS} columns")
    return targets


class TrainRequest(RecipeRequest):
    """A training. Only `model`, `target` and one of `dataset` and `data` are required."""

    target: Target | Annotated[tuple[Target, ...], AfterValidator(_few)] = Field(  # type: ignore[assignment]
        description="a column; {name, lower, upper, integer} bounds the predictions of a number; "
        "a list of columns of numbers: each has a network of its own, and the version also "
        "answers what holds for all of them together"
    )
    method: MethodConfig = _DEFAULTS.method
    alias: Alias | None = None
    out_of_distribution: OutOfDistributionConfig | None = Field(
        None, description="how often a row like those of training may be flagged"
    )

    def each(self) -> "tuple[TrainRequest, ...]":
        """The request for each target alone."""
        targets = self.target if isinstance(self.target, tuple) else (self.target,)
        return tuple(self.model_copy(update={"target": target}) for target in targets)

    def config(self, columns: Sequence[ColumnProfile], method: MethodConfig) -> ModelConfig:
        """The configuration with `out_of_distribution`, which in a comparison is a data set."""
        config = super().config(columns, method)
        return replace(config, out_of_distribution=self.out_of_distribution)


def _feature_configs(
    features: Sequence[str | FeatureConfig] | None, columns: Sequence[ColumnProfile]
) -> tuple[FeatureConfig, ...] | None:
    """The features, with the stored type of a column that is only named. `resolve` checks them."""
    if features is None:
        return None
    types = {column.name: column.type for column in columns}
    return tuple(
        FeatureConfig(name=f, type=types.get(f, "number")) if isinstance(f, str) else f  # type: ignore[arg-type]
        for f in features
    )
