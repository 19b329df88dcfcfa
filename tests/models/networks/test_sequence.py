"""Recurrent layers, embeddings and the networks made of them, against torch's own modules."""

import math

import pytest
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import pad

from models.config import RecurrentConfig
from models.layers.embedding import Embedding
from models.layers.recurrent import Recurrent
from models.networks import Inputs
from models.networks.network import fan_in
from models.networks.prior_groups import Sharing, prior_groups
from models.networks.recurrent import LanguageModel, SequenceNetwork, recurrent_layers, run
from models.posteriors.layout import Layout

KINDS = ["rnn", "lstm", "gru"]
MODULES = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
Named = dict[str, Tensor]


def _randn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, generator=generator)


def _leaves(layout: Layout, samples: int | None) -> Named:
    lead = () if samples is None else (samples,)
    vector = _randn(*lead, layout.num_weights) * 0.5
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


@pytest.mark.parametrize("samples", [None, 1, 5])
@pytest.mark.parametrize("own_inputs", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_values_states_and_gradients_are_those_of_torch(
    kind: str, own_inputs: bool, samples: int | None
) -> None:
    layers = recurrent_layers(RecurrentConfig(kind=kind, hidden=(4, 4)), 3)  # type: ignore[arg-type]
    layout = Layout({k: v for layer in layers for k, v in layer.shapes().items()})
    weights = _leaves(layout, samples)
    lead = (samples,) if own_inputs and samples else ()
    x = _randn(*lead, 6, 7, 3, seed=1).requires_grad_()
    first = [_randn(2, 6, 4, seed=i).requires_grad_() for i in range(2 if kind == "lstm" else 1)]
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
    directions = [_randn(*part.shape, seed=9) for part in found]
    ours = torch.autograd.grad(found, leaves, directions)
    theirs = torch.autograd.grad(expected, leaves, directions)
    for a, b in zip([*found, *ours], [*expected, *theirs], strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_cut_in_two_goes_on_from_its_states(kind: str) -> None:
    model = LanguageModel.build(RecurrentConfig(kind=kind, hidden=(5, 4)), 9)  # type: ignore[arg-type]
    weights = model.layout.unflatten(_randn(3, model.layout.num_weights))
    tokens = torch.arange(14).reshape(2, 7) % 9
    whole, last = model.advance(weights, tokens)
    head, states = model.advance(weights, tokens[:, :3])
    tail, end = model.advance(weights, tokens[:, 3:], states)
    torch.testing.assert_close(torch.cat([head, tail], dim=-2), whole)
    torch.testing.assert_close(end, last)


def test_detached_states_cut_the_gradient() -> None:
    layer = Recurrent("r", "lstm", 3, 4)
    weights = _leaves(Layout(layer.shapes()), None)
    x = _randn(2, 5, 3).requires_grad_()
    _, state = layer(weights, x[:, :3])
    outputs, _ = layer(weights, x[:, 3:], tuple(part.detach() for part in state))
    outputs.sum().backward()
    assert x.grad is not None
    assert not x.grad[:, :3].any()
    assert x.grad[:, 3:].all()


def test_samples_may_start_from_states_of_their_own_with_shared_weights() -> None:
    layer = Recurrent("r", "gru", 3, 4)
    weights = _leaves(Layout(layer.shapes()), None)
    x, h = _randn(2, 5, 3), _randn(6, 2, 4, seed=1)
    together, (last,) = layer(weights, x, (h,))
    one, (end,) = layer(weights, x, (h[4],))
    torch.testing.assert_close(together[4], one)
    torch.testing.assert_close(last[4], end)


@pytest.mark.parametrize("samples", [None, 1, 5])
def test_an_embedding_gathers_from_each_samples_matrix(samples: int | None) -> None:
    embedding = Embedding("e", 6, 4)
    weights = _leaves(Layout(embedding.shapes()), samples)
    weight, tokens = weights[embedding.weight], torch.tensor([[0, 5, 5], [2, 2, 5]])
    found = embedding(weights, tokens)
    matrices = [weight] if samples is None else list(weight)
    expected = torch.stack([torch.nn.functional.embedding(tokens, m) for m in matrices])
    expected = expected.reshape(found.shape)
    torch.testing.assert_close(found, expected)
    direction = _randn(*found.shape, seed=1)
    torch.testing.assert_close(
        *(torch.autograd.grad(value, weight, direction) for value in (found, expected))
    )


def _language_model_by_torch(model: LanguageModel, weights: Named, tokens: Tensor) -> Tensor:
    """An embedding, torch's LSTM and a linear layer that shares the embedding's tensor."""
    matrix = weights["embedding.weight"]
    first = [torch.zeros(2, len(tokens), 4, dtype=torch.float64)] * 2
    x = torch.nn.functional.embedding(tokens, matrix)
    hidden = _by_torch(model.recurrent, weights, x, first)[0]
    return torch.nn.functional.linear(hidden, matrix, weights["decoder.bias"])


@pytest.mark.parametrize("samples", [None, 1, 5])
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
    direction, leaves = _randn(*found.shape, seed=1), list(weights.values())
    pairs = (torch.autograd.grad(value, leaves, direction) for value in (found, expected))
    torch.testing.assert_close(*pairs)


@pytest.mark.parametrize("kind", KINDS)
def test_sample_s_of_a_network_is_the_single_pass_with_weights_s(kind: str) -> None:
    network = SequenceNetwork.build(RecurrentConfig(kind=kind, hidden=(5, 4)), Inputs.of((7, 3)), 2)  # type: ignore[arg-type]
    draws = network.layout.unflatten(_randn(5, network.layout.num_weights))
    x = _randn(6, 7 * 3, seed=1)
    together = network(draws, x)
    assert together.shape == (5, 6, 2)
    for s in range(5):
        torch.testing.assert_close(together[s], network(_one(draws, s), x))


def test_the_head_reads_the_last_state() -> None:
    network = SequenceNetwork.build(RecurrentConfig(kind="gru", hidden=(4,)), Inputs.of((7, 3)), 2)
    weights = network.layout.unflatten(_randn(network.layout.num_weights))
    x = _randn(6, 7, 3, seed=1)
    _, ((last,),) = run(network.recurrent, weights, x, None)
    torch.testing.assert_close(network(weights, x.flatten(1)), network.head(weights, last))


def test_the_layout_counts_the_tied_tensor_once() -> None:
    model = LanguageModel.build(RecurrentConfig(kind="lstm", hidden=(5, 4)), 9)
    assert model.layout.shapes == {
        "embedding.weight": (9, 4),
        "lstm0.input.weight": (20, 4),
        "lstm0.input.bias": (20,),
        "lstm0.hidden.weight": (20, 5),
        "lstm1.input.weight": (16, 5),
        "lstm1.input.bias": (16,),
        "lstm1.hidden.weight": (16, 4),
        "decoder.bias": (9,),
    }
    like = torch.empty(model.layout.num_weights)
    assert prior_groups(model, Sharing()).sizes(like).tolist() == model.layout.sizes


def test_the_prior_groups_separate_the_outputs_of_a_head() -> None:
    network = SequenceNetwork.build(RecurrentConfig(kind="gru", hidden=(4,)), Inputs.of((7, 3)), 2)
    assert network.layout.shapes["gru0.hidden.bias"] == (4,)
    separate = prior_groups(network, Sharing(separate_outputs=True))
    sizes = separate.sizes(torch.empty(network.layout.num_weights))
    assert sizes.tolist() == [*network.layout.sizes[:-2], 4, 4, 1, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_weights_start_at_the_scale_of_their_fan_in(kind: str) -> None:
    model = LanguageModel.build(RecurrentConfig(kind=kind, hidden=(80, 100)), 500)  # type: ignore[arg-type]
    weights = model.init(torch.Generator().manual_seed(0))
    fans = {"embedding.weight": 100, f"{kind}0.input.weight": 180, f"{kind}1.hidden.weight": 180}
    for name, fan in fans.items():
        assert fan_in(model.layers, name) == fan
        assert weights[name].std().item() == pytest.approx(1 / math.sqrt(fan), rel=0.05)
    assert not any(weight.any() for name, weight in weights.items() if name.endswith("bias"))
