"""Members in one network are fitted as if each were alone."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from models.config import (
    BBBConfig,
    GaussianPriorConfig,
    MLPConfig,
    PartConfig,
    ScaleMixturePriorConfig,
)
from models.features.rows import Rows
from models.fitting.distributed import Part
from models.inference.bbb import BayesByBackprop, BBBState
from models.likelihoods import HeteroscedasticGaussian
from models.networks import Inputs, Stack, build_network
from models.posteriors.mean_field import MeanFieldNormal

N = 20
PARTS = (PartConfig(members=2, hidden=(5,), skip=True), PartConfig(members=1, hidden=(4, 3)))


def _stack(*parts: PartConfig, inputs: int = 3, outputs: int = 2) -> Stack:
    network = build_network(MLPConfig(parts=parts), Inputs(inputs), outputs)
    assert isinstance(network, Stack)
    return network


def _rows(weights: Tensor | None = None) -> Rows:
    x = torch.randn(N, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return Rows(x[:, :3], x[:, 3], weights)


def _state(stack: Stack, seed: int = 0) -> BBBState:
    size, random = stack.layout.num_weights, torch.Generator().manual_seed(seed)
    loc, rho = torch.randn(2, size, generator=random, dtype=torch.float64)
    return BBBState(MeanFieldNormal(loc.requires_grad_(), (rho - 2).requires_grad_()), {})


PRIORS = [
    GaussianPriorConfig(sigma=0.7),
    GaussianPriorConfig(sigma="per_input"),
    GaussianPriorConfig(sigma="per_weight"),
    ScaleMixturePriorConfig(kind="scale_mixture"),
]


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: str(getattr(p, "sigma", "mixture")))
def test_divergences_and_gradients_are_the_sums_over_single_networks(prior: object) -> None:
    """Without rows there is only the KL, with the same noise for the stack and for each member."""
    stack = _stack(*PARTS)
    config = BBBConfig(estimator="weight", prior=prior)  # type: ignore[arg-type]
    method = BayesByBackprop(stack, HeteroscedasticGaussian(), config, N)
    state, q = _state(stack), _state(stack).posterior
    noise = torch.randn(q.loc.shape, generator=torch.Generator().manual_seed(7), dtype=q.loc.dtype)
    drawn = method._reparameterise(state.posterior, noise)
    together = method._divergence(state.posterior, drawn, noise)
    assert together.shape == (2,)
    expected, start = [], 0
    for network in stack.networks:
        one = slice(start, start + network.layout.num_weights)
        alone = BayesByBackprop(network, HeteroscedasticGaussian(), config, N)
        own = MeanFieldNormal(q.loc[one], q.rho[one]).distribution()
        expected.append(alone.prior.reverse_kl(own, noise[one]))
        start = one.stop
    torch.testing.assert_close(together[0], expected[0] + expected[1])
    torch.testing.assert_close(together[1], expected[2])
    found = torch.autograd.grad(together.sum(), [state.posterior.loc, state.posterior.rho])
    naive = torch.autograd.grad(torch.stack(expected).sum(), [q.loc, q.rho])
    torch.testing.assert_close(found, naive)


def test_each_member_learns_from_its_own_rows_with_its_own_weight_of_the_kl() -> None:
    """Σ_m [Σ_i w_im nll_im / |B| + c_part KL_m / N], by naive autograd from the same draw."""
    stack = _stack(replace(PARTS[0], kl_weight=0.3), PARTS[1])
    kept = (torch.arange(N).unsqueeze(1) % 3 != torch.arange(3)).double()
    config = BBBConfig(estimator="weight", prior=GaussianPriorConfig(sigma="auto"))
    method = BayesByBackprop(stack, HeteroscedasticGaussian(), config, N)
    assert method.kl.weight == 1.0
    state, rows = _state(stack), _rows(kept)
    loss = method.loss(state, rows, 0.5, torch.Generator().manual_seed(4), Part.whole(len(rows)))
    q = _state(stack).posterior
    noise = torch.empty_like(q.loc).normal_(generator=torch.Generator().manual_seed(4))
    drawn = stack.layout.blocks(q.distribution().rsample(noise))
    pieces = [piece for block in drawn for piece in block]
    total, start = torch.zeros((), dtype=torch.float64), 0
    for m, (network, c) in enumerate(zip(stack.networks, (0.3, 0.3, 1.0), strict=True)):
        outputs = network(network.layout.unflatten(pieces[m]), rows.inputs)
        nll = -HeteroscedasticGaussian().log_prob(outputs, rows.targets, {})
        one = slice(start, start + network.layout.num_weights)
        alone = BayesByBackprop(network, HeteroscedasticGaussian(), config, N)
        kl = alone.prior.reverse_kl(MeanFieldNormal(q.loc[one], q.rho[one]).distribution())
        total = total + (kept[:, m] * nll).sum() / N + 0.5 * c * kl / N
        start = one.stop
    torch.testing.assert_close(loss.nelbo, total)
    found = torch.autograd.grad(loss.nelbo, [state.posterior.loc, state.posterior.rho])
    torch.testing.assert_close(found, torch.autograd.grad(total, [q.loc, q.rho]))
