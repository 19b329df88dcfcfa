"""A method of 60 lines in a file of its own does what the others do; nothing else knows it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NotRequired

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter
from torch import Tensor

from models.artifact import schema
from models.artifact.files import examine_artifact, write_model
from models.config import MAPConfig, MethodConfig, MLPConfig, ModelConfig, TrainingConfig
from models.evaluation.calibration import NumberCalibration
from models.features.targets import NumberTarget
from models.inference.method import Finished, Fit, Stages, State, check_tensor
from models.inference.point import DrawsState, PointEstimates, repeated
from models.inference.registry import METHODS
from models.likelihoods import Likelihood
from models.networks import Network
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from tests.models.training.fitting import trained


@dataclass(frozen=True, kw_only=True)
class JitterConfig:
    kind: Literal["jitter"] = "jitter"
    prior_sigma: float = 1.0
    width: float = 0.1  # σ of each weight


@dataclass(frozen=True)
class JitterState(State):
    kind = purpose = "jitter"
    estimate: DrawsState
    width: Tensor

    num_weights = num_noise = property(lambda self: self.estimate.num_weights)
    point = property(lambda self: self.estimate.point)

    def draws(self, noise: Tensor) -> DrawsState:
        point = {name: repeated(value[0], len(noise)) for name, value in self.point.items()}
        return DrawsState(self.estimate.weights + self.width * noise, point)

    def parameters(self) -> list[Tensor]:
        return self.estimate.parameters()

    def named(self) -> dict[str, Tensor]:
        return self.estimate.named() | {"width": self.width}

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "JitterState":
        return cls(DrawsState.unpack(tensors, num_weights), tensors["width"])

    def check(self, network: Network, likelihood: Likelihood) -> None:
        self.estimate.check(network, likelihood)
        check_tensor("width", self.width, ())


class Jitter(PointEstimates):
    """A method that nobody registered: the fit of `map`, and a Gaussian of one width around it."""

    settings, stored = JitterConfig, JitterState

    def finish(self, fit: Fit, stages: Stages) -> Finished:
        return Finished(JitterState(fit.state, torch.tensor(self.config.width)))


WIDTH = 0.1
AT = {"x": np.array([-1.0, 0.0, 2.0])}


@dataclass(frozen=True, kw_only=True)
class Settings(ModelConfig):
    """What JSON may hold, with the new method: the second line that a method needs elsewhere."""

    method: MethodConfig | JitterConfig  # type: ignore[assignment]


class Document(schema.ModelDocument):
    config: Settings  # type: ignore[misc]
    others: NotRequired[list[schema.ModelDocument]]


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METHODS, JitterConfig, Jitter)
        patch.setattr(schema, "_validate", lambda: TypeAdapter(Document).validate_python)
        yield


def line(rows: int, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.normal(size=rows)
    return {"x": x, "y": 2 * x + random.normal(0, 0.3, rows)}


def fitted(method: Any) -> TabularModel:
    """A network without hidden layers: y is linear in its weights."""
    return trained(
        line(200, 0),
        method=method,
        network=MLPConfig(hidden=()),
        likelihood="homoscedastic",
        training=TrainingConfig(epochs=40, learning_rate=0.05, batch_size=50, background=0),
    )


@pytest.fixture(scope="module")
def model() -> TabularModel:
    return fitted(JitterConfig(width=WIDTH))


def test_it_predicts_the_mixture_over_its_weights(model: TabularModel) -> None:
    """ŷ = b + Σ w x, so that its variance is σ² (1 + Σ x²), in squared units of y.

    Of 4,000 draws a variance has a standard error of √(2/4000) = 2.2 %; 10 % is over four of them.
    """
    x = model.encoder.expand(model.encode(AT))
    assert isinstance(model.target, NumberTarget)
    variance = (WIDTH * model.target.std) ** 2 * (1 + x.square().sum(1))
    calibration = model.calibration_of(0.0)
    assert isinstance(calibration, NumberCalibration)
    expected = calibration.variance_scale * variance
    answer = model.predict(AT, PredictOptions(samples=4_000, seed=1))
    np.testing.assert_allclose(answer.variance["epistemic"], expected.numpy(), rtol=0.1)


def test_a_stored_model_is_the_same_model(model: TabularModel, tmp_path: Path) -> None:
    write_model(model, tmp_path / "model")
    read = examine_artifact(tmp_path / "model")
    assert isinstance(read, TabularModel)
    assert read.config.method == model.config.method
    options = PredictOptions(samples=30)
    before, after = (m.predict(AT, options) for m in (model, read))
    assert np.array_equal(before.mean, after.mean)
    assert np.array_equal(before.variance["total"], after.variance["total"])


def test_it_is_compared_with_the_others(model: TabularModel) -> None:
    """It is the same fit as that of `map`, whose predicted means it has on average."""
    other, rows = fitted(MAPConfig(kind="map")), line(500, 1)
    mine, plain = (m.evaluate(rows) for m in (model, other))
    assert mine["rmse"] == pytest.approx(plain["rmse"], rel=0.05)
    described = model.description["method"]
    assert described == {"kind": "jitter", "prior_sigma": 1.0, "width": WIDTH}
