"""Members with shared weights are networks with the weights W ∘ (s rᵀ)."""

import pytest
import torch
from torch import Tensor

from models.config import MLPConfig, PartConfig
from models.networks import MLP, Inputs, Stack, build_network
from models.training.trainer import clip_members
from tests.models.functions import randn

# Two networks of three members each that read three of four columns, and one ordinary network.
PARTS = (
    PartConfig(members=6, hidden=(5, 7), inputs="plain", sharing="rank_one", networks=2),
    PartConfig(members=1, hidden=(4,)),
)


@pytest.fixture
def stack() -> Stack:
    return build_network(MLPConfig(parts=PARTS), Inputs(4, plain=(0, 1, 3)), 2)


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
    vector, x = randn(stack.layout.num_weights).requires_grad_(), randn(8, 4, seed=1)
    weights = stack.layout.unflatten(vector)
    together = stack(weights, x)
    plain = MLP.build(MLPConfig(hidden=(5, 7)), 3, 2)
    columns = torch.tensor([0, 1, 3])
    alone = torch.stack([plain(_naive(weights, m // 3, m % 3), x[:, columns]) for m in range(6)])
    assert together.shape == (7, 8, 2)
    torch.testing.assert_close(together[:6], alone)
    seed = randn(6, 8, 2, seed=2)
    found = torch.autograd.grad(together[:6], vector, seed, retain_graph=True)
    torch.testing.assert_close(found, torch.autograd.grad(alone, vector, seed))


def test_samples_and_masks_have_their_own_axis(stack: Stack) -> None:
    draws, x = randn(3, stack.layout.num_weights), randn(8, 4, seed=1)
    together = stack(stack.layout.unflatten(draws), x)
    one_by_one = torch.stack([stack(stack.layout.unflatten(draw), x) for draw in draws])
    torch.testing.assert_close(together, one_by_one)
    weights = stack.layout.unflatten(draws[0])
    assert stack.mask_widths == (30, 42, 4)
    masks = [(randn(5, 1, w, seed=i) > 0).double() for i, w in enumerate(stack.mask_widths)]
    shared = stack(weights, x, masks)
    by_row = stack(weights, x, [mask[2].expand(8, -1) for mask in masks])
    assert shared.shape == (5, 7, 8, 2)
    torch.testing.assert_close(shared[2], by_row)
    plain, own = MLP.build(MLPConfig(hidden=(5, 7)), 3, 2), _naive(weights, 1, 0)
    member = [masks[0][2][:, 15:20], masks[1][2][:, 21:28]]
    alone = plain(own, x[:, torch.tensor([0, 1, 3])], member)
    torch.testing.assert_close(by_row[3], alone)


def test_gradients_are_clipped_by_network(stack: Stack) -> None:
    vector, point = torch.zeros(stack.layout.num_weights), torch.zeros(7, 1)
    vector.grad, point.grad = randn(len(vector)).float(), torch.arange(7.0).view(7, 1)
    before = vector.grad.clone()
    clip_members([vector, point], stack.layout, 1.0)
    after, size = vector.grad, stack.parts[0].network.layout.num_weights
    norm = (before[:size].square().sum() + 0 + 1 + 4).sqrt()
    torch.testing.assert_close(after[:size], before[:size] / norm)
    torch.testing.assert_close(point.grad[:3, 0], torch.arange(3.0) / norm)
