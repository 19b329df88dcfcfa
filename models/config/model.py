"""All that defines a model given its data."""

from dataclasses import dataclass, field

from models.config.common import STRICT, ColumnName, FeatureConfig, LikelihoodName, Pruning, Task
from models.config.forecasting import ForecastConfig
from models.config.language import LanguageConfig
from models.config.methods import BBBConfig, MethodConfig
from models.config.networks import MLPConfig, NetworkConfig
from models.config.training import OutOfDistributionConfig, TrainingConfig


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """All that defines a model given its data."""

    __pydantic_config__ = STRICT
    target: ColumnName
    features: tuple[FeatureConfig, ...] | None = None
    task: Task | None = None
    likelihood: LikelihoodName | None = None
    weight: ColumnName | None = None
    network: NetworkConfig = field(default_factory=MLPConfig)
    method: MethodConfig = field(default_factory=BBBConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    pruning: Pruning | None = None
    language: LanguageConfig | None = None
    forecast: ForecastConfig | None = None
    out_of_distribution: OutOfDistributionConfig | None = None
