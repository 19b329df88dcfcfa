"""A method is one class and one line: a made-up one trains, is stored and predicts."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from models.artifact import files
from models.artifact.files import read_model, write_model
from models.config import MAPConfig, MethodConfig, MLPConfig, TrainingConfig
from models.config.methods import ChainConfig
from models.inference.chains import Chains
from models.inference.method import Finished, Fit, Stages, State
from models.inference.point import MAP, DrawsState
from models.inference.registry import METHODS, method_of
from models.likelihoods import Likelihood
from models.networks import Network
from models.prediction.options import PredictOptions
from tests.models.training.fitting import trained


@dataclass(frozen=True, kw_only=True)
class JitterConfig(MAPConfig):
    """A `map` fit whose weights are known to one part in `times`."""

    kind: Literal["map"] = "map"
    times: float = 10.0


@dataclass(frozen=True)
class JitterState(State):
    """Weights that are drawn from N(fit, (fit/times)²)."""

    kind = "jitter"

    fit: DrawsState
    times: Tensor

    @property
    def num_weights(self) -> int:
        return self.fit.num_weights

    @property
    def point(self) -> dict[str, Tensor]:
        return self.fit.point

    @property
    def num_noise(self) -> int:
        return self.num_weights

    def parameters(self) -> list[Tensor]:
        return self.fit.parameters()

    def named(self) -> dict[str, Tensor]:
        return self.fit.named() | {"times": self.times}

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "JitterState":
        return cls(DrawsState.unpack(tensors, num_weights), tensors["times"])

    def check(self, network: Network, likelihood: Likelihood) -> None:
        self.fit.check(network, likelihood)

    def draws(self, noise: Float[Tensor, "draws noise"]) -> DrawsState:
        weights = self.fit.weights * (1 + noise / self.times)
        point = {k: v.expand(len(noise), *v.shape[1:]) for k, v in self.point.items()}
        return DrawsState(weights, point)


class Jitter(MAP):
    """What a new method has to say: its settings, its state, and what follows the fit."""

    settings = JitterConfig
    stored = JitterState

    def finish(self, fit: Fit, stages: Stages) -> Finished:
        return Finished(JitterState(fit.state.detach(), torch.tensor(self.config.times)))


@pytest.fixture
def registered() -> Iterator[None]:
    METHODS[JitterConfig] = Jitter
    yield
    del METHODS[JitterConfig]


def test_a_made_up_method_trains_is_stored_and_predicts(
    registered: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, 200)
    columns = {"x": x, "y": 5 + 3 * x + random.normal(0, 0.3, 200)}
    training = TrainingConfig(epochs=30, batch_size=16, learning_rate=0.02, background=0)
    config = JitterConfig()
    model = trained(columns, method=config, network=MLPConfig(hidden=(8,)), training=training)
    state = model.variant(0.0).state
    assert isinstance(state, JitterState)
    asked = {"x": np.array([-0.5, 0.5])}
    answer = model.predict(asked, PredictOptions(samples=50))
    assert answer.samples == 50
    assert (answer.variance["epistemic"] > 0).all()
    np.testing.assert_allclose(answer.mean, [3.5, 6.5], atol=1.0)
    write_model(model, tmp_path)
    document = files.read_json(tmp_path / files.MODEL)
    document["config"]["method"] = {"kind": "map"}  # the union of configurations lacks ours
    files.write_json(tmp_path / files.MODEL, document)
    monkeypatch.setattr(files, "check_file", lambda *_: None)
    read = read_model(tmp_path)
    assert np.array_equal(read.predict(asked, PredictOptions(samples=50)).mean, answer.mean)


def test_every_configuration_has_its_method() -> None:
    union = get_args(get_args(MethodConfig)[0])
    settings = {get_args(one)[0] for one in union}
    assert METHODS.keys() == settings
    assert {kind for kind, method in METHODS.items() if issubclass(method, Chains)} == set(
        get_args(ChainConfig)
    )


def test_a_configuration_that_is_not_registered_is_no_point_estimate() -> None:
    with pytest.raises(TypeError, match="no method is registered for JitterConfig"):
        method_of(JitterConfig())
    assert method_of(MAPConfig(kind="map")) is MAP
