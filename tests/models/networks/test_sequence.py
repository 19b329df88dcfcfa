"""Recurrent and stacked layers beside torch."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import functional_call
from torch.nn.functional import pad

from models.config import MLPConfig, PartConfig, RecurrentConfig
from models.layers.layer import _Draw
from models.layers.recurrent import Recurrent
from models.networks import MLP, Inputs, Stack, build_network
from models.networks.sequences import LanguageModel, recurrent_layers, run
from models.posteriors.layout import Layout
from tests.models.conftest import randn

KINDS = ["rnn", "lstm", "gru"]
MODULES = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
Named = dict[str, Tensor]


def _leaves(layout: Layout, samples: int | None) -> Named:
    lead = () if samples is None else (samples,)
    vector = randn(*lead, layout.num_weights) * 0.5
    return {k: v.clone().requires_grad_() for k, v in layout.unflatten(vector).items()}


def _one(weights: Named, s: int | None) -> Named:
    return weights if s is None else {name: weight[s] for name, weight in weights.items()}


def _torch_names(layers: tuple[Recurrent, ...], weights: Named) -> Named:
    """The weights as torch.nn's modules name them; what they have twice is 0 the second time."""
    named = {}
    for i, layer in enumerate(layers):
        bias = weights[layer.input.bias]
        second = torch.zeros_like(bias)
        if layer.kind == "gru":
            second = pad(weights[layer.hidden_bias], (2 * layer.hidden, 0))
        named[f"weight_ih_l{i}"], named[f"bias_ih_l{i}"] = weights[layer.input.weight], bias
        named[f"weight_hh_l{i}"], named[f"bias_hh_l{i}"] = weights[layer.hidden_weight], second
    return named


def _by_torch(
    layers: tuple[Recurrent, ...], weights: Named, x: Tensor, first: list[Tensor]
) -> tuple[Tensor, ...]:
    """Outputs and last states that torch gives, from first states [layers, batch, hidden]."""
    kind, hidden = layers[0].kind, layers[0].hidden
    module = MODULES[kind](layers[0].in_features, hidden, len(layers), batch_first=True).double()
    state = tuple(first) if kind == "lstm" else first[0]
    outputs, last = functional_call(module, _torch_names(layers, weights), (x, state))
    return outputs, *(last if kind == "lstm" else (last,))


@pytest.mark.parametrize(("samples", "own_inputs"), [(None, False), (1, True), (5, True)])
@pytest.mark.parametrize("kind", KINDS)
def test_states_and_gradients_are_torchs(kind: str, own_inputs: bool, samples: int | None) -> None:
    layers = recurrent_layers(RecurrentConfig(kind=kind, hidden=(4, 4)), 3)  # type: ignore[arg-type]
    layout = Layout({k: v for layer in layers for k, v in layer.shapes().items()})
    weights = _leaves(layout, samples)
    lead = (samples,) if own_inputs and samples else ()
    x = randn(*lead, 6, 7, 3, seed=1).requires_grad_()
    first = [randn(2, 6, 4, seed=i).requires_grad_() for i in range(2 if kind == "lstm" else 1)]
    states = tuple(tuple(part[i] for part in first) for i in range(2))
    outputs, last = run(layers, weights, x, states)
    found = [outputs, *(torch.stack(parts, dim=-3) for parts in zip(*last, strict=True))]
    each = [
        _by_torch(layers, _one(weights, s), x[s or 0] if lead else x, first)
        for s in ([None] if samples is None else range(samples))
    ]
    expected = [
        torch.stack(parts).reshape(f.shape)
        for f, parts in zip(found, zip(*each, strict=True), strict=True)
    ]
    leaves = [*weights.values(), x, *first]
    directions = [randn(*part.shape, seed=9) for part in found]
    ours = torch.autograd.grad(found, leaves, directions)
    theirs = torch.autograd.grad(expected, leaves, directions)
    for a, b in zip([*found, *ours], [*expected, *theirs], strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_cut_in_two_goes_on_from_its_states(kind: str) -> None:
    model = LanguageModel.build(RecurrentConfig(kind=kind, hidden=(5, 4)), 9)  # type: ignore[arg-type]
    weights = model.layout.unflatten(randn(3, model.layout.num_weights))
    tokens = torch.arange(14).reshape(2, 7) % 9
    whole, last = model.advance(weights, tokens)
    head, states = model.advance(weights, tokens[:, :3])
    tail, end = model.advance(weights, tokens[:, 3:], states)
    torch.testing.assert_close(torch.cat([head, tail], dim=-2), whole)
    torch.testing.assert_close(end, last)


def _language_model_by_torch(model: LanguageModel, weights: Named, tokens: Tensor) -> Tensor:
    """An embedding, torch's LSTM and a linear layer that shares the embedding's tensor."""
    matrix = weights["embedding.weight"]
    first = [torch.zeros(2, len(tokens), 4, dtype=torch.float64)] * 2
    x = torch.nn.functional.embedding(tokens, matrix)
    hidden = _by_torch(model.recurrent, weights, x, first)[0]
    return torch.nn.functional.linear(hidden, matrix, weights["decoder.bias"])


@pytest.mark.parametrize("samples", [None, 5])
def test_a_language_model_is_the_torch_modules_with_one_tied_tensor(samples: int | None) -> None:
    """The tied tensor's gradient is the sum of what both of its uses give."""
    model = LanguageModel.build(RecurrentConfig(kind="lstm", hidden=(4, 4)), 9)
    weights = _leaves(model.layout, samples)
    tokens = torch.arange(12).reshape(2, 6) % 7
    found = model(weights, tokens)
    numbers = [None] if samples is None else range(samples)
    each = [_language_model_by_torch(model, _one(weights, s), tokens) for s in numbers]
    expected = torch.stack(each).reshape(found.shape)
    torch.testing.assert_close(found, expected)
    direction, leaves = randn(*found.shape, seed=1), list(weights.values())
    pairs = (torch.autograd.grad(value, leaves, direction) for value in (found, expected))
    torch.testing.assert_close(*pairs)


# Parts: three members that read four of six columns around a linear path, two linear members.
CONFIG = MLPConfig(
    activation="tanh",
    parts=(
        PartConfig(members=3, hidden=(5, 4), inputs="plain", noise_path=True),
        PartConfig(members=2, hidden=(), inputs="piecewise"),
        PartConfig(members=1, hidden=(7,), inputs="piecewise"),
    ),
)
PLAIN = (0, 1, 3, 5)


@pytest.fixture
def stack() -> Stack:
    return build_network(CONFIG, Inputs(6, plain=PLAIN), num_outputs=2, of_noise=1)


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


def test_a_path_leads_from_the_inputs_to_the_last_outputs() -> None:
    network = MLP.build(MLPConfig(hidden=(5, 4)), 6, 3, path_to=2)
    weights = network.layout.unflatten(randn(network.layout.num_weights))
    dense, x = MLP.build(MLPConfig(hidden=(5, 4)), 6, 3), randn(8, 6, seed=1)
    expected = dense({name: weights[name] for name in dense.layout.shapes}, x)
    expected[:, 1:] += x @ weights["path.weight"].mT + weights["path.bias"]
    torch.testing.assert_close(network(weights, x), expected)


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


def _parts(size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    mean, noise = torch.randn(2, size, generator=random, dtype=dtype)
    variance = torch.rand(size, generator=random, dtype=dtype) + 0.1
    return mean.requires_grad_(), variance.requires_grad_(), noise


def test_the_gradient_is_the_numerical_one() -> None:
    assert gradcheck(_Draw.apply, _parts(20, torch.float64))  # type: ignore[no-untyped-call]
