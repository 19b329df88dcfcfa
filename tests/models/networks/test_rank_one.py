"""Members with shared weights are networks with the weights W ∘ (s rᵀ)."""

import pytest
import torch
from torch import Tensor

from models.config import BBBConfig, MLPConfig, PartConfig
from models.exceptions import InvalidData
from models.features.rows import Rows
from models.inference.bbb import BayesByBackprop
from models.likelihoods import HeteroscedasticGaussian, HomoscedasticGaussian
from models.networks import MLP, Inputs, Stack, build_network, draws_units
from models.networks.prior_groups import Sharing, prior_groups
from models.training.trainer import clip_members

# Two networks of three members each that read three of four columns, and one ordinary network.
PARTS = (
    PartConfig(members=6, hidden=(5, 7), inputs="plain", sharing="rank_one", networks=2),
    PartConfig(members=1, hidden=(4,)),
)


@pytest.fixture
def stack() -> Stack:
    network = build_network(MLPConfig(parts=PARTS), Inputs(4, plain=(0, 1, 3)), 2)
    assert isinstance(network, Stack)
    return network


def _randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def _naive(weights: dict[str, Tensor], network: int, member: int) -> dict[str, Tensor]:
    """The weights of one member as those of an ordinary network."""
    own = {
        name.removeprefix("part0."): t[network] for name, t in weights.items() if "part0" in name
    }
    found = {}
    for layer in ("dense0", "dense1"):
        scale = torch.outer(own[f"{layer}.output"][member], own[f"{layer}.input"][member])
        found[f"{layer}.weight"] = own[f"{layer}.weight"] * scale
        found[f"{layer}.bias"] = own[f"{layer}.bias"][member]
    return found | {f"dense2.{part}": own[f"dense2.{part}"][member] for part in ("weight", "bias")}


def test_the_outputs_are_those_of_networks_with_the_members_weights(stack: Stack) -> None:
    """Values and gradients, against six ordinary networks."""
    vector, x = _randn(stack.layout.num_weights).requires_grad_(), _randn(8, 4, seed=1)
    weights = stack.layout.unflatten(vector)
    together = stack(weights, x)
    plain = MLP.build(MLPConfig(hidden=(5, 7)), 3, 2)
    columns = torch.tensor([0, 1, 3])
    alone = torch.stack([plain(_naive(weights, m // 3, m % 3), x[:, columns]) for m in range(6)])
    assert together.shape == (7, 8, 2)
    torch.testing.assert_close(together[:6], alone)
    seed = _randn(6, 8, 2, seed=2)
    found = torch.autograd.grad(together[:6], vector, seed, retain_graph=True)
    torch.testing.assert_close(found, torch.autograd.grad(alone, vector, seed))


def test_samples_and_masks_have_their_own_axis(stack: Stack) -> None:
    draws, x = _randn(3, stack.layout.num_weights), _randn(8, 4, seed=1)
    together = stack(stack.layout.unflatten(draws), x)
    one_by_one = torch.stack([stack(stack.layout.unflatten(draw), x) for draw in draws])
    torch.testing.assert_close(together, one_by_one)
    weights = stack.layout.unflatten(draws[0])
    assert stack.mask_widths == (30, 42, 4)
    masks = [(_randn(5, 1, w, seed=i) > 0).double() for i, w in enumerate(stack.mask_widths)]
    shared = stack(weights, x, masks)
    by_row = stack(weights, x, [mask[2].expand(8, -1) for mask in masks])
    assert shared.shape == (5, 7, 8, 2)
    torch.testing.assert_close(shared[2], by_row)
    plain, own = MLP.build(MLPConfig(hidden=(5, 7)), 3, 2), _naive(weights, 1, 0)
    member = [masks[0][2][:, 15:20], masks[1][2][:, 21:28]]
    alone = plain(own, x[:, torch.tensor([0, 1, 3])], member)
    torch.testing.assert_close(by_row[3], alone)


def test_the_members_start_different_and_with_constant_noise(stack: Stack) -> None:
    method = BayesByBackprop.build(stack, HeteroscedasticGaussian(), BBBConfig(), 20)
    state = method.init(torch.Generator().manual_seed(0))
    outputs = stack(stack.layout.unflatten(state.posterior.loc), torch.randn(8, 4))
    assert (outputs[..., 1] == 0).all()
    assert (torch.cdist(outputs[..., 0], outputs[..., 0]) + torch.eye(7) > 0.1).all()


def test_units_are_not_drawn_apart_and_losses_count_each_member(stack: Stack) -> None:
    """The method draws weights although the local estimator is configured."""
    assert not draws_units(stack)
    likelihood = HomoscedasticGaussian()
    method = BayesByBackprop.build(stack, likelihood, BBBConfig(estimator="local"), 20)
    assert method.members == 7
    state = method.init(torch.Generator().manual_seed(0))
    assert state.point["log_variance"].shape == (7, 1)
    rows = Rows(torch.randn(20, 4), torch.randn(20), torch.ones(20, 7))
    loss = method.loss(state, rows, 1.0, torch.Generator().manual_seed(0))
    assert loss.nelbo.isfinite()


def test_gradients_are_clipped_by_network(stack: Stack) -> None:
    vector, point = torch.zeros(stack.layout.num_weights), torch.zeros(7, 1)
    vector.grad, point.grad = torch.randn_like(vector), torch.arange(7.0).view(7, 1)
    before = vector.grad.clone()
    clip_members([vector, point], stack.layout, 1.0)
    after, size = vector.grad, stack.parts[0].network.layout.num_weights
    norm = (before[:size].square().sum() + 0 + 1 + 4).sqrt()
    torch.testing.assert_close(after[:size], before[:size] / norm)
    torch.testing.assert_close(point.grad[:3, 0], torch.arange(3.0) / norm)


def test_each_output_of_each_member_has_a_prior_scale(stack: Stack) -> None:
    groups = prior_groups(stack, Sharing(separate_outputs=True))
    sizes = groups.sizes(torch.empty(stack.layout.num_weights)).tolist()
    first = [15, 9, 15, 15, 35, 15, 21, 21, *[7] * 6, *[1] * 6]
    assert sizes[: 2 * len(first)] == first * 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"skip": True}, "no linear path"),
        ({"members": 5, "networks": 2}, "5 members cannot be divided among 2 networks"),
    ],
)
def test_parts_that_cannot_share_are_refused(changes: dict[str, object], message: str) -> None:
    part = PartConfig(**{"members": 4, "sharing": "rank_one"} | changes)  # type: ignore[arg-type]
    with pytest.raises(InvalidData, match=message):
        build_network(MLPConfig(parts=(part,)), Inputs(4), 2)
