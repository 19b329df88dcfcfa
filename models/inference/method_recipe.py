"""The parts of the recipe that depend on the method: prior, KL, pruning."""

from dataclasses import dataclass, replace
from typing import Literal

from models.config import (
    BBBConfig,
    GaussianPriorConfig,
    MethodConfig,
    ModelConfig,
    PriorConfig,
    Task,
)
from models.exceptions import InvalidData
from models.inference.registry import method_of
from models.networks import MLP, Network

PRUNING = (0.5, 0.75, 0.9, 0.95)


@dataclass(frozen=True)
class FitPlan:
    """How the KL enters a fit, and how long the fit takes.

    Args:
        prior: the scale of the prior, learned by empirical Bayes.
        kl_weight: relative to that of the ELBO.
        warmup: share of the epochs over which the KL ramps up.
        fine_tune: epochs of a pruned variant, as a share of the fit's.
        epochs: of the fit, at least.
    """

    prior: Literal["auto", "per_weight"] = "auto"
    kl_weight: Literal["uniform"] | float = "uniform"
    warmup: float = 0.6
    fine_tune: float = 0.15
    epochs: int = 20


_ELBO = FitPlan()
# Where a classifier of images has more weights than rows, the ELBO underfits: on held-out rows of
# MNIST (784-400-400-10, 10 epochs) a log likelihood of −0.325 against −0.048 with this share of the
# KL. Images hardly have noise; tables have, and a share of the KL overfits it: there the weight is
# chosen on the rows (`models.tabular.race`). The model's notes say that its objective is tempered.
_TEMPERED = FitPlan(kl_weight=0.05)
# Dense networks fit, calibrate and prune best with a prior scale for each weight, which does not
# shrink large weights: more of the KL can stay, and longer fits still gain (see docs/method.md).
_RELEVANCE = FitPlan(prior="per_weight", warmup=0.3, fine_tune=0.1, epochs=50)
_RELEVANCE_KL = 0.2
# One scale per weight can overfit: on the 1,800 digits of scikit-learn one per tensor is better
# (log likelihood −0.05 against −0.07), on 50,000 images one per weight.
_RELEVANCE_ROWS = 10_000
_OWN_SCALES = (GaussianPriorConfig(), GaussianPriorConfig(sigma="per_weight"))


def plan_fit(
    config: ModelConfig,
    task: Task,
    network: Network,
    num_weights: int,
    num_rows: int,
    *,
    reads_images: bool,
) -> FitPlan:
    """The ELBO's plan, and a tempered one for classifiers of images with more weights than rows.

    A fit with fewer epochs than the plan's gets a share of the KL that is smaller in proportion.
    """
    method = config.method
    is_large = num_weights > num_rows and task == "classification" and reads_images
    if not isinstance(method, BBBConfig) or not is_large:
        return _ELBO
    if not isinstance(network, MLP) or method.prior not in _OWN_SCALES:
        return _TEMPERED
    if num_rows < _RELEVANCE_ROWS and method.prior == GaussianPriorConfig():
        return _TEMPERED
    share = min(1.0, (config.training.epochs or _RELEVANCE.epochs) / _RELEVANCE.epochs)
    return replace(_RELEVANCE, kl_weight=round(_RELEVANCE_KL * share, 4))


def choose_prior(method: BBBConfig, sigma: float | Literal["auto", "per_weight"]) -> PriorConfig:
    """The prior, with this scale if it is a Gaussian without one.

    Raises:
        InvalidData: if the scale is learned and the KL is forward, which needs a fixed prior.
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
    """The fractions to prune; none for methods without a σ for each weight.

    Raises:
        InvalidData: if fractions are given for such a method.
    """
    if method_of(config.method).is_mean_field:
        return PRUNING if config.pruning is None else tuple(sorted(set(config.pruning)))
    if config.pruning:
        raise InvalidData(
            f"weights are pruned by |μ|/σ, and method {config.method.kind!r} has no σ for each: "
            "leave pruning out, or train with method 'bbb'",
            "/pruning",
        )
    return ()


def notes_on_objective(method: MethodConfig) -> tuple[str, ...]:
    """A note for the model's card if the KL is tempered."""
    if not isinstance(method, BBBConfig) or method.kl.weight in (None, "uniform", "blundell", 1.0):
        return ()
    return (f"the KL has weight {method.kl.weight}: the objective is no ELBO",)


def no_local_estimator() -> InvalidData:
    """The error for the local estimator with a network whose steps share their weights."""
    return InvalidData(
        "the local estimator would give every time step weights of its own: "
        "give estimator 'weight' or leave it out",
        "/method/estimator",
    )
