"""Dropout's masks: the right mean, one per sample for all rows, one per row in training."""

import pytest
import torch

from models.config import DropoutConfig, MLPConfig, ModelConfig
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile
from models.features.rows import Rows
from models.inference.mc_dropout import DropoutState, MCDropout, masks
from models.likelihoods import HomoscedasticGaussian
from models.networks import MLP
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
