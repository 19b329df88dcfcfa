"""A stack computes what its members compute alone, in every form of weights, masks and noise."""

import pytest
import torch
from torch import Tensor

from models.config import MLPConfig, PartConfig
from models.exceptions import InvalidData
from models.networks import MLP, Inputs, Stack, build_network
from models.networks.prior_groups import Sharing, prior_groups

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
    network = build_network(CONFIG, Inputs(6, plain=PLAIN), num_outputs=2)
    assert isinstance(network, Stack)
    return network


def _randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


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
    vector, x = _randn(stack.layout.num_weights), _randn(8, 6, seed=1)
    together = stack(stack.layout.unflatten(vector), x)
    alone = [net(net.layout.unflatten(w), x[:, c]) for net, w, c in _members(stack, vector)]
    assert together.shape == (6, 8, 2)
    torch.testing.assert_close(together, torch.stack(alone))


def test_the_sample_axis_comes_before_the_members(stack: Stack) -> None:
    draws, x = _randn(4, stack.layout.num_weights), _randn(8, 6, seed=1)
    together = stack(stack.layout.unflatten(draws), x)
    one_by_one = torch.stack([stack(stack.layout.unflatten(draw), x) for draw in draws])
    torch.testing.assert_close(together, one_by_one)
    own = _randn(4, 8, 6, seed=2)  # rows of its own for each sample
    apart = [
        stack(stack.layout.unflatten(draw), rows) for draw, rows in zip(draws, own, strict=True)
    ]
    torch.testing.assert_close(stack(stack.layout.unflatten(draws), own), torch.stack(apart))


def test_a_linear_path_leads_around_the_hidden_layers() -> None:
    network = MLP.build(MLPConfig(hidden=(5,)), 3, 2, skip=True)
    plain = MLP.build(MLPConfig(hidden=(5,)), 3, 2)
    vector, x = _randn(network.layout.num_weights), _randn(8, 3, seed=1)
    weights = network.layout.unflatten(vector)
    expected = plain(weights, x) + x @ weights["skip.weight"].T
    torch.testing.assert_close(network(weights, x), expected)
    assert MLP.build(MLPConfig(hidden=()), 3, 2, skip=True).skip is None


def test_masks_are_those_of_each_member(stack: Stack) -> None:
    """Per row for training, and per sample for prediction."""
    vector, x = _randn(stack.layout.num_weights), _randn(8, 6, seed=1)
    weights, widths = stack.layout.unflatten(vector), stack.mask_widths
    assert widths == (15, 12, 7)
    per_row = [(_randn(8, width, seed=i) > 0).double() for i, width in enumerate(widths)]
    outputs = stack(weights, x, per_row)
    net, own, columns = _members(stack, vector)[1]
    expected = net(
        net.layout.unflatten(own), x[:, columns], [per_row[0][:, 5:10], per_row[1][:, 4:8]]
    )
    torch.testing.assert_close(outputs[1], expected)
    shared = [(_randn(3, 1, width, seed=i) > 0).double() for i, width in enumerate(widths)]
    samples = stack(weights, x, shared)
    one = stack(weights, x, [mask[2].expand(8, -1) for mask in shared])
    assert samples.shape == (3, 6, 8, 2)
    torch.testing.assert_close(samples[2], one)


def test_local_draws_are_those_of_each_member(stack: Stack) -> None:
    """Values and gradients against the members alone with the same noise."""
    loc, rho = (_randn(stack.layout.num_weights, seed=i).requires_grad_() for i in range(2))
    x, widths = _randn(8, 6, seed=2), stack.noise_widths()
    noise = [_randn(8, width, seed=3 + i) for i, width in enumerate(widths)]
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
    seed = _randn(*together.shape, seed=9)
    found = torch.autograd.grad(together, [loc, rho], seed)
    torch.testing.assert_close(found, torch.autograd.grad(expected, [loc, rho], seed))


def test_the_layout_has_one_member_after_the_other(stack: Stack) -> None:
    vector = _randn(3, stack.layout.num_weights)
    named = stack.layout.unflatten(vector)
    assert named["part0.dense0.weight"].shape == (3, 3, 5, 4)
    torch.testing.assert_close(stack.layout.flatten(named), vector)
    blocks = stack.layout.blocks(vector[0])
    assert [tuple(block.shape[:-1]) for block in blocks] == [(3,), (2,), (1,)]
    assert stack.layout.members == 6
    torch.testing.assert_close(torch.cat([b.flatten() for b in blocks]), vector[0])


def test_a_selection_keeps_the_outputs_of_its_members(stack: Stack) -> None:
    vector, x = _randn(stack.layout.num_weights), _randn(8, 6, seed=1)
    slices = [own for _, own, _ in _members(stack, vector)]
    some = stack.select([0, 2, 5])
    assert [part.count for part in some.parts] == [2, 1]
    outputs = some(some.layout.unflatten(torch.cat([slices[i] for i in (0, 2, 5)])), x)
    whole = stack(stack.layout.unflatten(vector), x)
    torch.testing.assert_close(outputs, whole[[0, 2, 5]])
    with pytest.raises(ValueError, match=r"\[2, 0\] are not ascending numbers from 0 to 5"):
        stack.select([2, 0])


def test_scales_per_input_are_shared_by_what_leaves_an_input(stack: Stack) -> None:
    """Of the first member: an input's weights to the first layer and along the linear path."""
    groups = prior_groups(stack, Sharing(separate_outputs=True, per_input=True))
    vector = _randn(stack.layout.num_weights)
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


def test_the_number_of_members_is_bounded() -> None:
    parts = (PartConfig(members=100), PartConfig(members=29))
    with pytest.raises(InvalidData, match="129 members together; at most 128"):
        build_network(MLPConfig(parts=parts), Inputs(3), 1)
