"""Methods of inference and their priors."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Interval
from pydantic import BeforeValidator, Discriminator, Tag

from models.config.ranges import STRICT, Fraction, Scale, kind_or
from models.older_versions import no_sharpening


@dataclass(frozen=True, kw_only=True)
class GaussianPriorConfig:
    """N(0, sigma²). Sigma can be learned by empirical Bayes: per tensor, per input or per weight.

    `"per_input"` gives all weights that leave an input one scale, so that inputs that do not matter
    are switched off; the other tensors have one scale each. It is for MLPs. The recommended sigma
    is `"auto"` (per tensor), for large classifiers `"per_weight"`, for language models 1.
    """

    __pydantic_config__ = STRICT
    kind: Literal["gaussian"] = "gaussian"
    sigma: Scale | Literal["auto", "per_input", "per_weight"] | None = None


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
    """Direction and weight of the KL divergence; a weight of 1 ("uniform") gives the ELBO."""

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
    """Bayes by Backprop: a mean-field Gaussian fitted by stochastic gradients of the ELBO.

    `estimator` "local" draws the pre-activations of each row, "weight" draws one weight vector per
    mini-batch; the default is "local" where the network allows it.
    """

    __pydantic_config__ = STRICT
    kind: Literal["bbb"] = "bbb"
    estimator: Literal["local", "weight"] | None = None
    prior: PriorConfig = field(default_factory=GaussianPriorConfig)
    kl: KLConfig = field(default_factory=KLConfig)
    initial_sigma: Scale | Literal["auto"] = "auto"


@dataclass(frozen=True, kw_only=True)
class MLEConfig:
    """Maximum likelihood: one weight vector without a prior. Only aleatoric uncertainty."""

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
    """`members` independent `map` fits, each from its own initial weights."""

    __pydantic_config__ = STRICT
    kind: Literal["ensemble"]
    prior_sigma: Scale = 1.0
    members: Annotated[int, Interval(ge=2, le=100)] = 5


@dataclass(frozen=True, kw_only=True)
class DropoutConfig:
    """Monte-Carlo dropout: each hidden unit is dropped with probability `rate`."""

    __pydantic_config__ = STRICT
    kind: Literal["mc_dropout"]
    rate: Annotated[float, Interval(ge=0.001, le=0.9)] = 0.1
    prior_sigma: Scale = 1.0


@dataclass(frozen=True, kw_only=True)
class SWAGConfig:
    """A Gaussian with the moments of SGD's iterates around a `map` fit.

    After the fit, SGD runs for `epochs` more epochs at a constant rate; the last three quarters are
    collected. By default rate and preconditioner follow from rows, batch, curvature and noise, so
    that the iterates are as wide as the posterior; with a `learning_rate` a note says how wide they
    are. The low-rank part of the covariance has the deviations at the ends of `rank` epochs.
    """

    __pydantic_config__ = STRICT
    kind: Literal["swag"]
    prior_sigma: Scale = 1.0
    epochs: Annotated[int, Interval(ge=2, le=10_000)] = 60
    learning_rate: Annotated[float, Interval(gt=0.0, le=10.0)] | None = None
    rank: Annotated[int, Interval(ge=2, le=100)] = 40


@dataclass(frozen=True, kw_only=True)
class LaplaceConfig:
    """A Gaussian around a `map` fit, whose precision is the curvature there plus the prior's.

    `over` says which weights are uncertain: those of the last layer, or all, whose network is then
    linear in them around the fit. `hessian` is the form of the curvature: one Kronecker product for
    each layer, its diagonal, or in full (of the last layer). `prior_sigma` "auto" has the largest
    marginal likelihood of each layer.
    """

    __pydantic_config__ = STRICT
    kind: Literal["laplace"]
    over: Literal["last_layer", "all"] = "last_layer"
    hessian: Literal["kron", "diagonal", "full"] = "kron"
    prior_sigma: Scale | Literal["auto"] = "auto"


Chains = Annotated[int, Interval(ge=1, le=32)]
Steps = Annotated[int, Interval(ge=1, le=1_000_000)]
Draws = Annotated[int, Interval(ge=4, le=10_000)]
StepSize = Annotated[float, Interval(gt=0.0, le=10.0)]


@dataclass(frozen=True, kw_only=True)
class SGLDConfig:
    """Stochastic-gradient Langevin dynamics: chains that start from the fits of an ensemble.

    By default the steps follow from the curvature and from the noise of mini-batches. A given
    `step_size` h is that of gradient descent on the loss per row with learning rate h, plus noise
    of variance 2h/N. After t steps the size is (1 + t/burn_in)^-decay of the first. Each chain
    keeps `draws` draws, about `thinning` steps apart, further where steps are smaller.
    """

    __pydantic_config__ = STRICT
    kind: Literal["sgld"]
    prior_sigma: Scale = 1.0
    chains: Chains = 4
    draws: Draws = 50
    burn_in: Steps = 1_000
    thinning: Steps = 50
    step_size: StepSize | None = None
    decay: Annotated[float, Interval(ge=0.0, le=1.0)] = 0.33


@dataclass(frozen=True, kw_only=True)
class CyclicalSGLDConfig:
    """SGLD whose step size falls to 0 along a cosine in each cycle, by default as `sgld` finds it.

    The first half of a cycle moves to another mode, without noise. Each chain keeps `draws` draws
    per cycle from its second half, further apart where steps are smaller.
    """

    __pydantic_config__ = STRICT
    kind: Literal["csgld"]
    prior_sigma: Scale = 1.0
    chains: Chains = 4
    cycles: Annotated[int, Interval(ge=1, le=1_000)] = 4
    cycle_steps: Annotated[int, Interval(ge=20, le=1_000_000)] = 1_000
    draws: Annotated[int, Interval(ge=1, le=1_000)] = 10
    step_size: StepSize | None = None


@dataclass(frozen=True, kw_only=True)
class MetropolisConfig:
    """Random-walk Metropolis on all rows, for small networks. Starts from an ensemble's fits.

    The scale of the proposals is adapted during the `burn_in` steps and fixed afterwards.
    """

    __pydantic_config__ = STRICT
    kind: Literal["metropolis"]
    prior_sigma: Scale = 1.0
    chains: Chains = 4
    draws: Draws = 100
    burn_in: Steps = 2_000
    thinning: Steps = 50


ChainConfig = SGLDConfig | CyclicalSGLDConfig | MetropolisConfig


MethodConfig = Annotated[
    Annotated[BBBConfig, Tag("bbb")]
    | Annotated[MAPConfig, Tag("map")]
    | Annotated[MLEConfig, Tag("mle")]
    | Annotated[EnsembleConfig, Tag("ensemble")]
    | Annotated[DropoutConfig, Tag("mc_dropout")]
    | Annotated[SWAGConfig, Tag("swag")]
    | Annotated[LaplaceConfig, Tag("laplace")]
    | Annotated[SGLDConfig, Tag("sgld")]
    | Annotated[CyclicalSGLDConfig, Tag("csgld")]
    | Annotated[MetropolisConfig, Tag("metropolis")],
    Discriminator(kind_or("bbb")),
    BeforeValidator(no_sharpening),
]
