"""`POST /train`: flat, as people write it. The hyper-parameters are those of `models.config`."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, PrivateAttr, ValidationInfo, model_validator

from app.schemas.common import DatasetId, Json, ModelName, Request
from core.jobs.specs import Alias, Metadata, TrainSpec
from core.names import dotted_paths
from models.config import (
    ColumnName,
    FeatureConfig,
    ForecastConfig,
    LanguageConfig,
    LikelihoodName,
    MethodConfig,
    ModelConfig,
    NetworkConfig,
    OutOfDistributionConfig,
    Pruning,
    Task,
    TrainingConfig,
)
from models.features.columns import ColumnProfile

_DEFAULTS = ModelConfig(target="y")
Features = tuple[ColumnName | FeatureConfig, ...]
SETTINGS = {field.name for field in fields(ModelConfig)}


class InlineData(Request):
    """A small data set within the request; larger ones go to `POST /datasets`."""

    columns: dict[ColumnName, list[Any]] = Field(min_length=1)


def _not_empty(features: Features) -> Features:
    if not features:
        raise ValueError("must name at least one column; leave it out for all")
    return features


class RecipeRequest(Request):
    """All of a training but its method; `model`, `target` and `dataset` or `data` are needed."""

    model: ModelName
    dataset: DatasetId | None = None
    data: InlineData | None = None
    target: ColumnName
    features: Annotated[Features, AfterValidator(_not_empty)] | None = Field(
        None, description="default: all other columns; {name, type} overrides a type"
    )
    task: Task | None = None
    likelihood: LikelihoodName | None = None
    weight: ColumnName | None = None
    network: NetworkConfig = _DEFAULTS.network
    training: TrainingConfig = _DEFAULTS.training
    pruning: Pruning | None = None
    language: LanguageConfig | None = None
    forecast: ForecastConfig | None = Field(
        None, description="forecasting: which column tells the time, how far ahead and back"
    )
    metadata: Metadata = Field(default_factory=dict)
    _sent: Json = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _keep_document(self, info: ValidationInfo) -> Self:
        """Defaults look like what was sent, once the document is read."""
        self._sent = info.context or {}
        return self

    def given(self, method: Json | None = None) -> tuple[str, ...]:
        """The settings that were asked for, by dotted paths; null asks for what is recommended."""
        sent = {name: value for name, value in self._sent.items() if name in SETTINGS}
        paths = dotted_paths(sent if method is None else sent | {"method": method})
        return tuple(path for path, value in paths.items() if value is not None)

    def config(self, columns: Sequence[ColumnProfile], method: MethodConfig) -> ModelConfig:
        """The configuration as asked; `models.training.recipe.resolve` fills in the rest."""
        return ModelConfig(
            target=self.target,
            features=_feature_configs(self.features, columns),
            task=self.task,
            likelihood=self.likelihood,
            weight=self.weight,
            network=self.network,
            method=method,
            training=self.training,
            pruning=self.pruning,
            language=self.language,
            forecast=self.forecast,
        )


class TrainRequest(RecipeRequest):
    """Only `model`, `target` and one of `dataset` and `data` are needed."""

    method: MethodConfig = _DEFAULTS.method
    alias: Alias | None = None
    out_of_distribution: OutOfDistributionConfig | None = Field(
        None, description="how often a row like those of training may be flagged as unlike them"
    )

    def config(self, columns: Sequence[ColumnProfile], method: MethodConfig) -> ModelConfig:
        """As asked, with what a comparison calls by the name of its strange rows."""
        config = super().config(columns, method)
        return replace(config, out_of_distribution=self.out_of_distribution)


def public_request(spec: TrainSpec) -> Json:
    """The request with every default filled in, in the form in which it can be sent again."""
    stored: Json = spec.model_dump(mode="json", include=set(TrainSpec.model_fields) - {"given"})
    config: Json = stored.pop("config")
    return config | stored


def _feature_configs(
    features: Sequence[str | FeatureConfig] | None, columns: Sequence[ColumnProfile]
) -> tuple[FeatureConfig, ...] | None:
    """Names become features of their column's own type; `resolve` refuses those it cannot use."""
    if features is None:
        return None
    types = {column.name: column.type for column in columns}
    return tuple(
        FeatureConfig(name=f, type=types.get(f, "number")) if isinstance(f, str) else f  # type: ignore[arg-type]
        for f in features
    )
