"""What every recipe asks of a method, whatever is predicted."""

from dataclasses import dataclass, replace
from typing import Literal

from models.config import (
    BBBConfig,
    GaussianPriorConfig,
    ModelConfig,
    PriorConfig,
    Task,
    TrainingConfig,
)
from models.exceptions import InvalidData
from models.networks import MLP, Network

PRUNING = (0.5, 0.75, 0.9, 0.95)


@dataclass(frozen=True)
class FitPlan:
    """How the divergence enters a fit, and for how long that takes.

    prior: the scale that empirical Bayes learns. kl_weight: relative to the ELBO's. warmup and
    fine_tune: shares of the epochs over which the KL ramps up, and for which a pruned variant is
    trained again. epochs: at the least.
    """

    prior: Literal["auto", "per_weight"] = "auto"
    kl_weight: Literal["uniform"] | float = "uniform"
    warmup: float = 0.6
    fine_tune: float = 0.15
    epochs: int = 20


_BOUND = FitPlan()
# Where a classifier has more weights than rows, the ELBO underfits: on held-out rows of MNIST
# (784-400-400-10, 10 epochs) a log likelihood of −0.325 against −0.048 with this share of the KL.
# The model's notes say that its objective is tempered.
_TEMPERED = FitPlan(kl_weight=0.05)
# Dense ones fit, calibrate and prune best with a prior for each weight, which leaves large weights
# alone: more of the KL can stay, and longer fits still gain (docs/method.md has the figures).
_RELEVANCE = FitPlan(prior="per_weight", warmup=0.3, fine_tune=0.1, epochs=50)
_RELEVANCE_KL = 0.2
# As many scales as weights can overfit: on the 1,800 digits of scikit-learn one per tensor did
# better (log likelihood −0.05 against −0.07), on 50,000 images one per weight.
_RELEVANCE_ROWS = 10_000
_OWN_SCALES = (GaussianPriorConfig(), GaussianPriorConfig(sigma="per_weight"))


def refuse_fractions(training: TrainingConfig, reason: str) -> None:
    """Of what only tables hold out rows for, beside those that are scored.

    Raises:
        InvalidData: at the fraction.
    """
    for name in ("calibration_fraction", "stopping_fraction"):
        if value := getattr(training, name):
            raise InvalidData(f"{name} {value:g}: {reason}; leave it out", f"/training/{name}")


def plan_fit(
    config: ModelConfig, task: Task, network: Network, num_weights: int, num_rows: int
) -> FitPlan:
    """The ELBO, but for classifiers with more weights than rows.

    Noise needs time: a fit that was asked to be shorter than the plan's takes as much less KL.
    """
    method = config.method
    if not isinstance(method, BBBConfig) or task != "classification" or num_weights <= num_rows:
        return _BOUND
    if not isinstance(network, MLP) or method.prior not in _OWN_SCALES:
        return _TEMPERED
    if num_rows < _RELEVANCE_ROWS and method.prior == GaussianPriorConfig():
        return _TEMPERED
    share = min(1.0, (config.training.epochs or _RELEVANCE.epochs) / _RELEVANCE.epochs)
    return replace(_RELEVANCE, kl_weight=round(_RELEVANCE_KL * share, 4))


def choose_prior(method: BBBConfig, sigma: float | Literal["auto", "per_weight"]) -> PriorConfig:
    """The prior, with this scale where a Gaussian's was left open.

    Raises:
        InvalidData: if it is learned where the divergence needs a fixed one.
    """
    prior = method.prior
    if isinstance(prior, GaussianPriorConfig) and prior.sigma is None:
        prior = replace(prior, sigma=sigma)
    learned = isinstance(prior, GaussianPriorConfig) and isinstance(prior.sigma, str)
    if method.kl.direction == "forward" and learned:
        raise InvalidData(
            "the forward KL needs a fixed prior: give prior.sigma a number, or a scale mixture",
            "/method/prior",
        )
    return prior


def choose_pruning(config: ModelConfig) -> tuple[float, ...]:
    """Ranking weights by |μ|/σ needs a σ: other methods have none of a weight's own."""
    if isinstance(config.method, BBBConfig):
        return PRUNING if config.pruning is None else tuple(sorted(set(config.pruning)))
    if config.pruning:
        raise InvalidData(
            f"weights are pruned by |μ|/σ, and method {config.method.kind!r} has no σ for each: "
            "leave pruning out, or train with method 'bbb'",
            "/pruning",
        )
    return ()


def no_local_estimator() -> InvalidData:
    """For networks whose steps share their weights."""
    return InvalidData(
        "the local estimator would give every time step weights of its own: "
        "give estimator 'weight' or leave it out",
        "/method/estimator",
    )
