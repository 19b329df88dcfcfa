"""The Fisher information of a likelihood in the outputs, as a sum of squares.

    F = E_{y ~ P(y | f)}[s sᵀ] = Σ_k r_k r_kᵀ,  s = ∂ log P(y | f)/∂f

Gaussians and up to `MOST` classes have it in closed form. For other likelihoods it is the mean over
`MOST` targets that are drawn from the model, which needs no more memory with more classes. (With
the observed targets it would be no Fisher information: Kunstner et al. 2019, arXiv 1905.12558.)
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from models.likelihoods import (
    Bernoulli,
    Categorical,
    HeteroscedasticGaussian,
    HomoscedasticGaussian,
    Likelihood,
    ShapedLikelihood,
)
from models.likelihoods.draws import draw_targets
from models.likelihoods.gaussian import MAX_LOG_VARIANCE, MIN_LOG_VARIANCE

MOST = 20

Outputs = Float[Tensor, "rows outputs"]
Roots = Float[Tensor, "roots rows outputs"]


def is_exact(likelihood: Likelihood) -> bool:
    """Whether the information is in closed form, not a mean over drawn targets."""
    match likelihood:
        case Categorical():
            return likelihood.num_classes <= MOST
        case ShapedLikelihood():
            return False
    return True


def count_roots(likelihood: Likelihood) -> int:
    """The number of vectors r_k."""
    return likelihood.num_outputs if is_exact(likelihood) else MOST


def fisher_roots(
    likelihood: Likelihood, outputs: Outputs, point: dict[str, Tensor], noise: torch.Generator
) -> Roots:
    """Return r_k for each row."""
    match likelihood:
        case HomoscedasticGaussian() | HeteroscedasticGaussian():
            return _of_gaussian(likelihood, outputs, point)
        case Bernoulli():
            return (torch.sigmoid(outputs) * torch.sigmoid(-outputs)).sqrt().unsqueeze(0)
        case Categorical() if is_exact(likelihood):
            return _of_classes(outputs.softmax(-1))
    scores = [_score(likelihood, outputs, point, noise) for _ in range(MOST)]
    return torch.stack(scores) / math.sqrt(MOST)


def _of_gaussian(
    likelihood: HomoscedasticGaussian | HeteroscedasticGaussian,
    outputs: Outputs,
    point: dict[str, Tensor],
) -> Roots:
    """diag(1/s², ½) for a mean and a log-variance, which has no effect beyond its bounds."""
    _, variance = likelihood.moments(outputs, point)
    roots = outputs.new_zeros(outputs.shape[1], *outputs.shape)
    roots[0, :, 0] = variance.rsqrt()
    if isinstance(likelihood, HeteroscedasticGaussian):
        log_variance = outputs[:, 1]
        free = (log_variance > MIN_LOG_VARIANCE) & (log_variance < MAX_LOG_VARIANCE)
        roots[1, :, 1] = free * math.sqrt(0.5)
    return roots


def _of_classes(probs: Outputs) -> Roots:
    """diag(p) − p pᵀ = R Rᵀ with R = diag(√p) − p √pᵀ."""
    root = probs.sqrt()
    return (torch.diag_embed(root) - probs.unsqueeze(2) * root.unsqueeze(1)).movedim(2, 0)


def _score(
    likelihood: Likelihood, outputs: Outputs, point: dict[str, Tensor], noise: torch.Generator
) -> Outputs:
    """s for a drawn target of each row."""
    if isinstance(likelihood, Categorical):
        probs = outputs.softmax(-1)
        drawn = torch.multinomial(probs, 1, generator=noise)[:, 0]
        return torch.nn.functional.one_hot(drawn, likelihood.num_classes) - probs
    assert isinstance(likelihood, ShapedLikelihood)
    with torch.enable_grad():
        free = outputs.detach().requires_grad_()
        targets = draw_targets(likelihood, outputs, noise)
        total = likelihood.log_prob(free, targets, point).sum()
        return torch.autograd.grad(total, free)[0]
