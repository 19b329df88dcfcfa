"""A stack computes what its members compute alone, in every form of weights, masks and noise."""

import pytest
import torch
from torch import Tensor

from models.config import MLPConfig, PartConfig
from models.inference.bbb import prior_groups
from models.networks import MLP, Inputs, Stack, build_network
from tests.models.functions import randn

# Two parts: three members that read four of six columns around a linear path, two linear members.
CONFIG = MLPConfig(
    activation="tanh",
    parts=(
        PartConfig(members=3, hidden=(5, 4), inputs="plain", skip=True),
        PartConfig(members=2, hidden=(), inputs="piecewise"),
        PartConfig(members=1, hidden=(7,), inputs="piecewise"),
    ),
)
PLAIN = (0, 1, 3, 5)


@pytest.fixture
def stack() -> Stack:
    return build_network(CONFIG, Inputs(6, plain=PLAIN), num_outputs=2)


def _members(stack: Stack, vector: Tensor) -> list[tuple[MLP, Tensor, Tensor]]:
    """Each member's network, its slice of the vector, and the columns that it reads."""
    found, start = [], 0
    for part in stack.parts:
        columns = torch.tensor(part.columns or tuple(range(6)))
        for _ in range(part.count):
            size = part.network.layout.num_weights
            found.append((part.network, vector[..., start : start + size], columns))
            start += size
    assert start == vector.shape[-1]
    return found


def test_the_outputs_are_those_of_single_networks(stack: Stack) -> None:
    vector, x = randn(stack.layout.num_weights), randn(8, 6, seed=1)
    together = stack(stack.layout.unflatten(vector), x)
    alone = [net(net.layout.unflatten(w), x[:, c]) for net, w, c in _members(stack, vector)]
    assert together.shape == (6, 8, 2)
    torch.testing.assert_close(together, torch.stack(alone))


def test_masks_are_those_of_each_member(stack: Stack) -> None:
    """Per row for training, and per sample for prediction."""
    vector, x = randn(stack.layout.num_weights), randn(8, 6, seed=1)
    weights, widths = stack.layout.unflatten(vector), stack.mask_widths
    assert widths == (15, 12, 7)
    per_row = [(randn(8, width, seed=i) > 0).double() for i, width in enumerate(widths)]
    outputs = stack(weights, x, per_row)
    net, own, columns = _members(stack, vector)[1]
    expected = net(
        net.layout.unflatten(own), x[:, columns], [per_row[0][:, 5:10], per_row[1][:, 4:8]]
    )
    torch.testing.assert_close(outputs[1], expected)
    shared = [(randn(3, 1, width, seed=i) > 0).double() for i, width in enumerate(widths)]
    samples = stack(weights, x, shared)
    one = stack(weights, x, [mask[2].expand(8, -1) for mask in shared])
    assert samples.shape == (3, 6, 8, 2)
    torch.testing.assert_close(samples[2], one)


def test_local_draws_are_those_of_each_member(stack: Stack) -> None:
    """Values and gradients against the members alone with the same noise."""
    loc, rho = (randn(stack.layout.num_weights, seed=i).requires_grad_() for i in range(2))
    x, widths = randn(8, 6, seed=2), stack.noise_widths()
    noise = [randn(8, width, seed=3 + i) for i, width in enumerate(widths)]
    assert widths == [15, 12, 6, 4, 7, 2]
    together = stack.local(stack.layout.unflatten(loc), stack.layout.unflatten(rho.exp()), x, noise)
    alone, first = [], 0
    for part in stack.parts:
        layers = len(part.network.noise_widths())
        blocks = [b.unflatten(1, (part.count, -1)) for b in noise[first : first + layers]]
        alone += [[block[:, member] for block in blocks] for member in range(part.count)]
        first += layers
    by_mean, by_rho = _members(stack, loc), _members(stack, rho.exp())
    expected = torch.stack(
        [
            net.local(net.layout.unflatten(m), net.layout.unflatten(v), x[:, c], blocks)
            for (net, m, c), (_, v, _), blocks in zip(by_mean, by_rho, alone, strict=True)
        ]
    )
    torch.testing.assert_close(together, expected)
    seed = randn(*together.shape, seed=9)
    found = torch.autograd.grad(together, [loc, rho], seed)
    torch.testing.assert_close(found, torch.autograd.grad(expected, [loc, rho], seed))


def test_scales_per_input_are_shared_by_what_leaves_an_input(stack: Stack) -> None:
    """Of the first member: an input's weights to the first layer and along the linear path."""
    groups = prior_groups(stack, separate_outputs=True, per_input=True)
    vector = randn(stack.layout.num_weights)
    sums, named = groups.sums(vector.square()), stack.layout.unflatten(vector.square())
    first, path = named["part0.dense0.weight"][0], named["part0.skip.weight"][0]
    torch.testing.assert_close(sums[:4], first.sum(0) + path.sum(0))
    biases = named["part0.dense0.bias"][0].sum().view(1)
    torch.testing.assert_close(sums[4:5], biases)
    # 4 inputs, bias, second weight and bias, and 2 outputs of weight and bias, of 3 members;
    # 6 inputs and 2 biases of 2 linear members; 6 inputs, bias and 4 of the last member.
    assert groups.part_counts == [3 * 11, 2 * 8, 11]
    torch.testing.assert_close(sums.sum(), vector.square().sum())
    assert groups.sizes(vector).sum() == stack.layout.num_weights
