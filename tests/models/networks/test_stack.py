"""A stack computes what its members compute alone, in every form of weights, masks and noise."""

import pytest
import torch
from torch import Tensor

from models.config import MLPConfig, PartConfig
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
