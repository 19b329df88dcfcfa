"""Methods beside Bayes by Backprop, end to end: trained, stored, read back, predicting."""

from pathlib import Path

import numpy as np
import pytest
import torch

from models.artifact.files import read_model, write_model
from models.config import (
    DropoutConfig,
    EnsembleConfig,
    LaplaceConfig,
    MAPConfig,
    MethodConfig,
    MetropolisConfig,
    MLPConfig,
    ModelConfig,
    SGLDConfig,
    SWAGConfig,
    TrainingConfig,
)
from models.exceptions import Stopped
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.train import TrainingRun, train
from tests.models.training.fitting import resolved, trained

QUICK = TrainingConfig(epochs=12, batch_size=64, learning_rate=0.02, background=0)
METHODS: dict[str, MethodConfig] = {
    "map": MAPConfig(kind="map"),
    "ensemble": EnsembleConfig(kind="ensemble", members=3),
    "mc_dropout": DropoutConfig(kind="mc_dropout", rate=0.05),
    "swag": SWAGConfig(kind="swag", epochs=6, rank=4),
    "laplace": LaplaceConfig(kind="laplace"),
    "sgld": SGLDConfig(kind="sgld", chains=2, draws=6, burn_in=10, thinning=3),
    "metropolis": MetropolisConfig(kind="metropolis", chains=2, draws=6, burn_in=20, thinning=5),
}
# Draws; the others make as many as are asked for.
KEPT = {"map": 1, "ensemble": 3, "sgld": 12, "metropolis": 12}
TYPES = {"x": "number", "y": "number"}


def line(rows: int = 200) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, rows)
    return {"x": x, "y": 1000 + 300 * x + random.normal(0, 30, rows)}


def configure(method: MethodConfig, **options: object) -> ModelConfig:
    given: dict[str, object] = {"network": MLPConfig(hidden=(8, 6)), "training": QUICK}
    return resolved(line(), method=method, **(given | options))


@pytest.fixture(scope="module", params=METHODS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(kind: str) -> TabularModel:
    return train(line(), TYPES, configure(METHODS[kind], likelihood="homoscedastic"))


X = {"x": np.array([-0.5, 0.0, 0.5, 3.0])}


def test_an_answer_decomposes_as_any_other(kind: str, model: TabularModel) -> None:
    answer = model.predict(X, PredictOptions(samples=40))
    assert (answer.samples, answer.sampler) == (KEPT.get(kind, 40), "monte_carlo")
    aleatoric, epistemic = (answer.variance[name] for name in ("aleatoric", "epistemic"))
    assert (aleatoric > 0).all()
    assert (epistemic > 0).all() == (answer.samples > 1)
    if answer.samples == 1:
        assert (epistemic == 0).all()
    assert (answer.get("mc_error") is None) == (kind in {"map", "ensemble"})
    np.testing.assert_allclose(answer.mean[:3], [850, 1000, 1150], atol=120)
    assert model.evaluate(line(40))["rmse"] < 120  # of 175 without x


def test_a_stored_model_is_the_same_model(model: TabularModel, tmp_path: Path) -> None:
    write_model(model, tmp_path / "model")
    read = read_model(tmp_path / "model")
    before, after = (m.predict(X, PredictOptions(samples=30)) for m in (model, read))
    assert np.array_equal(before.mean, after.mean)
    assert np.array_equal(before.variance["total"], after.variance["total"])
    assert read.config == model.config
    assert read.num_bytes == model.num_bytes > 0


@pytest.mark.parametrize("stop_at", [17, 40])
def test_a_resumed_run_gives_the_same_model(tmp_path: Path, stop_at: int) -> None:
    """Stopped in the fit, and among the steps of the chains."""
    config = configure(METHODS["sgld"])
    whole = train(line(), TYPES, config)
    asked = iter(range(100_000))
    stop = lambda: next(asked) >= stop_at  # noqa: E731
    with pytest.raises(Stopped):
        train(line(), TYPES, config, TrainingRun(should_stop=stop, checkpoint_dir=tmp_path))
    resumed = train(line(), TYPES, config, TrainingRun(checkpoint_dir=tmp_path))
    states = (m.variant(0.0).state.tensors() for m in (whole, resumed))
    for mine, theirs in zip(*states, strict=True):
        assert torch.equal(mine, theirs)
    assert whole.variant(0.0).metrics == resumed.variant(0.0).metrics


@pytest.mark.parametrize("kind", ["map", "mc_dropout", "laplace", "sgld"])
def test_classes_and_their_entropies(kind: str) -> None:
    random = np.random.default_rng(1)
    x = random.normal(0, 1, 150)
    label = np.where(x > 0.5, "high", np.where(x < -0.5, "low", "mid")).astype(object)
    network = MLPConfig(hidden=(8,))
    model = trained({"x": x, "y": label}, method=METHODS[kind], network=network, training=QUICK)
    answer = model.predict({"x": np.array([-2.0, 2.0])}, PredictOptions(samples=20))
    assert answer.labels == ["low", "high"]
    assert answer.entropy is not None
    mutual = answer.entropy["epistemic"]
    assert (mutual > 0).all() if answer.samples > 1 else np.allclose(mutual, 0)
