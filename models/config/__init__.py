"""Every hyper-parameter, defined once: its name, type, range and default.

Plain frozen dataclasses, so that a notebook can build them without a web framework. The ranges are
``annotated_types`` metadata: pydantic reads them where JSON comes in and OpenAPI shows them.
``None`` means "the recommended value for this data set": `models.training.recipe.resolve` fills it
in.
"""

from models.config.common import (
    STRICT,
    ColumnName,
    FeatureConfig,
    FeatureType,
    Fraction,
    Json,
    LikelihoodName,
    Pruning,
    Scale,
    Task,
    Width,
)
from models.config.forecasting import ForecastConfig
from models.config.language import LanguageConfig
from models.config.methods import (
    BBBConfig,
    ChainConfig,
    CyclicalSGLDConfig,
    DropoutConfig,
    EnsembleConfig,
    GaussianPriorConfig,
    KLConfig,
    MAPConfig,
    MethodConfig,
    MetropolisConfig,
    MLEConfig,
    PriorConfig,
    ScaleMixturePriorConfig,
    SGLDConfig,
    SWAGConfig,
)
from models.config.model import (
    ModelConfig,
)
from models.config.networks import (
    Activation,
    ConvolutionalConfig,
    MLPConfig,
    NetworkConfig,
    RecurrentConfig,
)
from models.config.training import (
    FALSE_ALARMS,
    OutOfDistributionConfig,
    Split,
    SplitBy,
    SplitTime,
    TrainingConfig,
)

__all__ = [
    "FALSE_ALARMS",
    "STRICT",
    "Activation",
    "BBBConfig",
    "ChainConfig",
    "ColumnName",
    "ConvolutionalConfig",
    "CyclicalSGLDConfig",
    "DropoutConfig",
    "EnsembleConfig",
    "FeatureConfig",
    "FeatureType",
    "ForecastConfig",
    "Fraction",
    "GaussianPriorConfig",
    "Json",
    "KLConfig",
    "LanguageConfig",
    "LikelihoodName",
    "MAPConfig",
    "MLEConfig",
    "MLPConfig",
    "MethodConfig",
    "MetropolisConfig",
    "ModelConfig",
    "NetworkConfig",
    "OutOfDistributionConfig",
    "PriorConfig",
    "Pruning",
    "RecurrentConfig",
    "SGLDConfig",
    "SWAGConfig",
    "Scale",
    "ScaleMixturePriorConfig",
    "Split",
    "SplitBy",
    "SplitTime",
    "Task",
    "TrainingConfig",
    "Width",
]
