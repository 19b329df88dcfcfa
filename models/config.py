"""Every hyper-parameter, defined once: its name, type, range and default.

Plain frozen dataclasses, so that a notebook can build them without a web framework. The ranges are
``annotated_types`` metadata: pydantic reads them where JSON comes in and OpenAPI shows them.
``None`` means "the recommended value for this data set": `models.recipe.resolve` fills it in.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Interval, Len

Task = Literal["regression", "classification"]
FeatureType = Literal["number", "category", "boolean", "datetime", "tensor"]
LikelihoodName = Literal["heteroscedastic", "homoscedastic", "categorical", "bernoulli"]

Width = Annotated[int, Interval(ge=1, le=16_384)]
ColumnName = Annotated[str, Len(1, 256)]
Scale = Annotated[float, Interval(ge=1e-6, le=1e3)]
Fraction = Annotated[float, Interval(gt=0.0, lt=1.0)]

STRICT = {"extra": "forbid"}  # pydantic's reading of a dataclass: an unknown field is an error


@dataclass(frozen=True, kw_only=True)
class FeatureConfig:
    """One input column and how it is read."""

    __pydantic_config__ = STRICT
    name: ColumnName
    type: FeatureType


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """A multilayer perceptron; `hidden` are the widths between input and output."""

    __pydantic_config__ = STRICT
    kind: Literal["mlp"] = "mlp"
    hidden: Annotated[tuple[Width, ...], Len(0, 16)] | None = None
    activation: Literal["relu", "tanh", "silu", "gelu"] = "relu"


@dataclass(frozen=True, kw_only=True)
class GaussianPriorConfig:
    """N(0, sigma²); `"auto"` learns one sigma per tensor by empirical Bayes."""

    __pydantic_config__ = STRICT
    kind: Literal["gaussian"] = "gaussian"
    sigma: Scale | Literal["auto"] = "auto"


@dataclass(frozen=True, kw_only=True)
class ScaleMixturePriorConfig:
    """pi N(0, sigma1²) + (1 - pi) N(0, sigma2²): Blundell et al. 2015, eq. 7."""

    __pydantic_config__ = STRICT
    kind: Literal["scale_mixture"]
    pi: Fraction = 0.5
    sigma1: Scale = 1.0
    sigma2: Scale = 0.0025


PriorConfig = GaussianPriorConfig | ScaleMixturePriorConfig


@dataclass(frozen=True, kw_only=True)
class KLConfig:
    """Direction and weight of the divergence; a weight of 1 ("uniform") is the ELBO."""

    __pydantic_config__ = STRICT
    direction: Literal["reverse", "forward"] = "reverse"
    weight: (
        Literal["uniform", "blundell", "parameters"]
        | Annotated[float, Interval(ge=0.0, le=100.0)]
        | None
    ) = None
    warmup_epochs: Annotated[int, Interval(ge=0, le=100_000)] | None = None


@dataclass(frozen=True, kw_only=True)
class BBBConfig:
    """Bayes by Backprop: a mean-field Gaussian fitted by stochastic gradients of the ELBO."""

    __pydantic_config__ = STRICT
    kind: Literal["bbb"] = "bbb"
    estimator: Literal["local", "weight"] = "local"
    prior: PriorConfig = field(default_factory=GaussianPriorConfig)
    kl: KLConfig = field(default_factory=KLConfig)
    initial_sigma: Scale | Literal["auto"] = "auto"


@dataclass(frozen=True, kw_only=True)
class SplitBy:
    """Rows with equal values of the column `by` stay on one side of the split."""

    __pydantic_config__ = STRICT
    by: ColumnName


@dataclass(frozen=True, kw_only=True)
class SplitTime:
    """The latest rows by the column `time` are held out."""

    __pydantic_config__ = STRICT
    time: ColumnName


Split = Literal["random"] | SplitBy | SplitTime


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """The optimiser's settings and which rows are held out."""

    __pydantic_config__ = STRICT
    epochs: Annotated[int, Interval(ge=1, le=100_000)] | None = None
    batch_size: Annotated[int, Interval(ge=1, le=65_536)] | None = None
    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: Annotated[float, Interval(gt=0.0, le=100.0)] | None = None
    schedule: Literal["cosine", "constant"] = "cosine"
    momentum: Annotated[float, Interval(ge=0.0, lt=1.0)] = 0.9
    gradient_clip: Annotated[float, Interval(gt=0.0, le=1e6)] | None = None
    validation_fraction: Annotated[float, Interval(gt=0.0, le=0.5)] = 0.1
    split: Split = "random"
    patience: Annotated[int, Interval(ge=1, le=100_000)] | None = None
    fine_tune_epochs: Annotated[int, Interval(ge=0, le=10_000)] | None = None
    refit: bool = False
    seed: Annotated[int, Interval(ge=0, le=2**31 - 1)] = 0
    device: Annotated[str, Len(1, 16)] = "auto"


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """All that defines a model given its data."""

    __pydantic_config__ = STRICT
    target: ColumnName
    features: tuple[FeatureConfig, ...] | None = None
    task: Task | None = None
    likelihood: LikelihoodName | None = None
    weight: ColumnName | None = None
    network: NetworkConfig = field(default_factory=NetworkConfig)
    method: BBBConfig = field(default_factory=BBBConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    pruning: Annotated[tuple[Fraction, ...], Len(0, 16)] = (0.5, 0.75, 0.9, 0.95)


Json = dict[str, Any]
