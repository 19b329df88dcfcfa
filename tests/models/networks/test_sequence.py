"""Recurrent layers, embeddings and the networks made of them, against torch's own modules."""

import pytest
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import pad

from models.config import RecurrentConfig
from models.layers.recurrent import Recurrent
from models.networks.sequences import LanguageModel, recurrent_layers, run
from models.posteriors.layout import Layout
from tests.models.functions import randn

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
def test_values_states_and_gradients_are_those_of_torch(
    kind: str, own_inputs: bool, samples: int | None
) -> None:
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
