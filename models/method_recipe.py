"""What every recipe asks of a method, whatever is predicted."""

from dataclasses import replace
from typing import Literal

from models.config import BBBConfig, GaussianPriorConfig, ModelConfig, PriorConfig
from models.exceptions import InvalidData

PRUNING = (0.5, 0.75, 0.9, 0.95)


def settle_prior(method: BBBConfig, sigma: float | Literal["auto"]) -> PriorConfig:
    """The prior, with this scale where a Gaussian's was left open.

    Raises:
        InvalidData: if it is learned where the divergence needs a fixed one.
    """
    prior = method.prior
    if isinstance(prior, GaussianPriorConfig) and prior.sigma is None:
        prior = replace(prior, sigma=sigma)
    learned = isinstance(prior, GaussianPriorConfig) and prior.sigma == "auto"
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
