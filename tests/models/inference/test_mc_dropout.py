"""Dropout's masks: the right mean, one per sample for all rows, one per row in training."""

import pytest
import torch

from models.config import DropoutConfig, MLPConfig, ModelConfig, RecurrentConfig
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile
from models.features.rows import Rows
from models.inference.mc_dropout import DropoutState, MCDropout, masked_matrices, masks
from models.likelihoods import HomoscedasticGaussian
from models.networks import MLP, Inputs, TensorSlot, build_network
from models.networks.recurrent import LanguageModel
from models.posteriors.priors import GaussianPrior
from models.prediction.weight_draws import DropoutDraws, FittedDraws
from models.randomness import generator
from models.training.distributed import Part
from models.training.recipe import resolve

NETWORK = MLP.build(MLPConfig(hidden=(30, 20)), 3, 1)
METHOD = MCDropout.build(
    NETWORK, HomoscedasticGaussian(), DropoutConfig(kind="mc_dropout", rate=0.25), 40
)


@pytest.fixture
def state() -> DropoutState:
    return METHOD.init(generator(0, "init"))


def test_masks_have_mean_one_and_leave_out_the_rate() -> None:
    """60,000 units: the share left out is within four of its standard errors."""
    noise = [torch.randn(1000, 60, generator=generator(0, "noise", i)) for i in range(2)]
    for mask, rate in zip(masks(noise, torch.tensor([0.1, 0.6])), (0.1, 0.6), strict=True):
        error = (rate * (1 - rate) / 60_000) ** 0.5
        assert abs(float((mask == 0).float().mean()) - rate) < 4 * error
        assert mask.max() == pytest.approx(1 / (1 - rate))
        assert abs(float(mask.mean()) - 1) < 4 * error / (1 - rate)


def test_a_sample_is_one_function_of_all_rows(state: DropoutState) -> None:
    x = torch.randn(5, 3, generator=generator(0, "x"))
    fitted = FittedDraws.of(NETWORK, state)
    assert isinstance(fitted.source, DropoutDraws)
    outputs, point = fitted.outputs(x, 3, 70, 2**28)
    weights = NETWORK.layout.unflatten(state.weights)
    drawn = fitted.source.functions(3, 0, 70).masks
    assert drawn is not None
    for sample in (0, 69):
        hidden = x
        for layer, mask in zip(NETWORK.layers, drawn, strict=False):
            hidden = torch.relu(layer(weights, hidden)) * mask[sample]
        torch.testing.assert_close(NETWORK.layers[-1](weights, hidden), outputs[sample])
    assert point["log_variance"].shape == (70, 1)
    pieces, _ = fitted.outputs(x, 3, 70, 2**10)
    torch.testing.assert_close(pieces, outputs)
    alone, _ = fitted.outputs(x[2:3], 3, 70, 2**28)
    torch.testing.assert_close(alone, outputs[:, 2:3])
    assert not torch.equal(fitted.outputs(x, 4, 70, 2**28)[0], outputs)


def test_parts_of_a_mini_batch_add_up_to_it(state: DropoutState) -> None:
    x = torch.randn(9, 3, generator=generator(0, "x"))
    rows = Rows(x, x.sum(1))

    def loss(part: Part) -> torch.Tensor:
        return METHOD.loss(state, rows[part.rows], 1.0, generator(0, "step"), part).nelbo

    whole = loss(Part.whole(9))
    torch.testing.assert_close(loss(Part(0, 4, 9, 2)) + loss(Part(4, 9, 9, 2)), whole)


def test_a_network_without_hidden_units_has_none_to_leave_out() -> None:
    profiles = [ColumnProfile(name=n, type="number", min=0.0, max=1.0) for n in ("x", "y")]
    method = DropoutConfig(kind="mc_dropout")
    config = ModelConfig(target="y", method=method, network=MLPConfig(hidden=()))
    with pytest.raises(InvalidData, match="this network has none") as caught:
        resolve(config, profiles, 100)
    assert caught.value.path == "/network/hidden"


def test_the_penalty_is_the_expected_square_of_the_masked_weights(state: DropoutState) -> None:
    """E‖zw/(1 − p)‖²/(2σ²) over 20,000 masks on the matrices that read hidden units."""
    keep = torch.rand(20_000, generator=generator(0, "z")) > 0.25
    factor = float((keep.double() / 0.75).square().mean())
    named = NETWORK.layout.unflatten(state.weights.double())
    read = [name for name in named if name in {"dense1.weight", "dense2.weight"}]
    assert masked_matrices(NETWORK.layout) == read
    squares = {name: float(value.square().sum()) for name, value in named.items()}
    expected = sum(v * (factor if name in read else 1.0) for name, v in squares.items()) / 2
    drawn = METHOD.draw(state, 1, generator(0, "draw")).penalty
    constant = -float(GaussianPrior(1.0).log_prob(torch.zeros_like(state.weights)).sum())
    assert float(drawn) - constant == pytest.approx(expected, rel=0.02)


def test_only_what_reads_masked_units_has_the_factor() -> None:
    """Not the first matrix, a path around the hidden layers, or a layer's own state."""
    skip = MLP.build(MLPConfig(hidden=(4,)), 3, 1, skip=True)
    assert masked_matrices(skip.layout) == ["dense1.weight"]
    gru = RecurrentConfig(kind="gru", hidden=(5, 5))
    text = LanguageModel.build(gru, 9)
    assert masked_matrices(text.layout) == ["gru1.input.weight"]
    series = build_network(gru, Inputs(26, TensorSlot(0, (5, 5))), 2)
    assert masked_matrices(series.layout) == ["gru1.input.weight", "dense0.weight"]
