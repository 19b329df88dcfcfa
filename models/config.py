"""Every hyper-parameter, defined once: its name, type, range and default.

Plain frozen dataclasses, so that a notebook can build them without a web framework. The ranges are
``annotated_types`` metadata: pydantic reads them where JSON comes in and OpenAPI shows them.
``None`` means "the recommended value for this data set": `models.recipe.resolve` fills it in.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Interval, Len
from pydantic import Discriminator, Tag

Task = Literal["regression", "classification"]
FeatureType = Literal["number", "category", "boolean", "datetime", "tensor"]
LikelihoodName = Literal["heteroscedastic", "homoscedastic", "categorical", "bernoulli"]

Width = Annotated[int, Interval(ge=1, le=16_384)]
ColumnName = Annotated[str, Len(1, 256)]
Scale = Annotated[float, Interval(ge=1e-6, le=1e3)]
Fraction = Annotated[float, Interval(gt=0.0, lt=1.0)]

Pruning = Annotated[tuple[Fraction, ...], Len(0, 16)]

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
class MLEConfig:
    """Maximum likelihood: one weight vector, no prior. Aleatoric uncertainty alone."""

    __pydantic_config__ = STRICT
    kind: Literal["mle"]


@dataclass(frozen=True, kw_only=True)
class MAPConfig:
    """The most probable weight vector under the prior N(0, prior_sigma²)."""

    __pydantic_config__ = STRICT
    kind: Literal["map"]
    prior_sigma: Scale = 1.0


@dataclass(frozen=True, kw_only=True)
class EnsembleConfig:
    """`members` independent fits as by `map`, from initial weights of their own."""

    __pydantic_config__ = STRICT
    kind: Literal["ensemble"]
    prior_sigma: Scale = 1.0
    members: Annotated[int, Interval(ge=2, le=100)] = 5


@dataclass(frozen=True, kw_only=True)
class DropoutConfig:
    """Monte-Carlo dropout: each hidden unit is left out with probability `rate`."""

    __pydantic_config__ = STRICT
    kind: Literal["mc_dropout"]
    rate: Annotated[float, Interval(ge=0.001, le=0.9)] = 0.1
    prior_sigma: Scale = 1.0


@dataclass(frozen=True, kw_only=True)
class SWAGConfig:
    """A Gaussian with the moments of SGD's iterates around a fit as by `map`.

    After the fit SGD goes on for `epochs` at a constant rate; of the last `rank` epochs' ends the
    deviations are kept.
    """

    __pydantic_config__ = STRICT
    kind: Literal["swag"]
    prior_sigma: Scale = 1.0
    epochs: Annotated[int, Interval(ge=2, le=10_000)] = 40
    learning_rate: Annotated[float, Interval(gt=0.0, le=10.0)] = 3e-3
    rank: Annotated[int, Interval(ge=2, le=100)] = 20


Chains = Annotated[int, Interval(ge=1, le=32)]
Steps = Annotated[int, Interval(ge=1, le=1_000_000)]
Draws = Annotated[int, Interval(ge=4, le=10_000)]
StepSize = Annotated[float, Interval(gt=0.0, le=10.0)]


@dataclass(frozen=True, kw_only=True)
class SGLDConfig:
    """Stochastic-gradient Langevin dynamics: chains that start from fits as by `ensemble`.

    A step of size h is one of gradient descent on the loss per row at the rate h, and noise of
    variance 2h/N; after t steps h is `step_size` · (1 + t/burn_in)^-decay. `draws` are per chain,
    `thinning` steps apart.
    """

    __pydantic_config__ = STRICT
    kind: Literal["sgld"]
    prior_sigma: Scale = 1.0
    chains: Chains = 4
    draws: Draws = 50
    burn_in: Steps = 1_000
    thinning: Steps = 50
    step_size: StepSize = 2e-3
    decay: Annotated[float, Interval(ge=0.0, le=1.0)] = 0.33


@dataclass(frozen=True, kw_only=True)
class CyclicalSGLDConfig:
    """SGLD whose step size falls from `step_size` to 0 in each cycle, along a cosine.

    The first half of a cycle looks for another mode, without noise; `draws` are those of each
    chain's cycle, evenly spread over its second half.
    """

    __pydantic_config__ = STRICT
    kind: Literal["csgld"]
    prior_sigma: Scale = 1.0
    chains: Chains = 4
    cycles: Annotated[int, Interval(ge=1, le=1_000)] = 4
    cycle_steps: Annotated[int, Interval(ge=20, le=1_000_000)] = 1_000
    draws: Annotated[int, Interval(ge=1, le=1_000)] = 10
    step_size: StepSize = 1e-2


@dataclass(frozen=True, kw_only=True)
class MetropolisConfig:
    """Random-walk Metropolis on all rows, for small networks; starts from fits as by `ensemble`.

    The proposals' scale is adapted during `burn_in` steps, and fixed from then on.
    """

    __pydantic_config__ = STRICT
    kind: Literal["metropolis"]
    prior_sigma: Scale = 1.0
    chains: Chains = 4
    draws: Draws = 100
    burn_in: Steps = 2_000
    thinning: Steps = 50


ChainConfig = SGLDConfig | CyclicalSGLDConfig | MetropolisConfig


def _kind(method: Any) -> str | None:
    """Which method is meant; without a kind it is the recommended one."""
    if isinstance(method, dict):
        return str(method.get("kind", "bbb"))
    return getattr(method, "kind", None)


MethodConfig = Annotated[
    Annotated[BBBConfig, Tag("bbb")]
    | Annotated[MAPConfig, Tag("map")]
    | Annotated[MLEConfig, Tag("mle")]
    | Annotated[EnsembleConfig, Tag("ensemble")]
    | Annotated[DropoutConfig, Tag("mc_dropout")]
    | Annotated[SWAGConfig, Tag("swag")]
    | Annotated[SGLDConfig, Tag("sgld")]
    | Annotated[CyclicalSGLDConfig, Tag("csgld")]
    | Annotated[MetropolisConfig, Tag("metropolis")],
    Discriminator(_kind),
]


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
    method: MethodConfig = field(default_factory=BBBConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    pruning: Pruning | None = None


Json = dict[str, Any]
