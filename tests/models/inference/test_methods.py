"""Methods beside Bayes by Backprop, end to end: trained, stored, read back, predicting."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.artifact.files import read_model, write_model
from models.config import (
    CyclicalSGLDConfig,
    DropoutConfig,
    EnsembleConfig,
    LaplaceConfig,
    MAPConfig,
    MethodConfig,
    MetropolisConfig,
    MLEConfig,
    MLPConfig,
    ModelConfig,
    SGLDConfig,
    SWAGConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData, InvalidInput, Stopped
from models.features.columns import ColumnProfile
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

QUICK = TrainingConfig(epochs=12, batch_size=64, learning_rate=0.02)
METHODS: dict[str, MethodConfig] = {
    "mle": MLEConfig(kind="mle"),
    "map": MAPConfig(kind="map"),
    "ensemble": EnsembleConfig(kind="ensemble", members=3),
    "mc_dropout": DropoutConfig(kind="mc_dropout", rate=0.05),
    "swag": SWAGConfig(kind="swag", epochs=6, rank=4),
    "laplace": LaplaceConfig(kind="laplace"),
    "linearised": LaplaceConfig(kind="laplace", over="all"),
    "sgld": SGLDConfig(kind="sgld", chains=2, draws=6, burn_in=10, thinning=3),
    "csgld": CyclicalSGLDConfig(kind="csgld", chains=2, cycles=2, cycle_steps=20, draws=3),
    "metropolis": MetropolisConfig(kind="metropolis", chains=2, draws=6, burn_in=20, thinning=5),
}
KEPT = {
    "mle": 1,
    "map": 1,
    "ensemble": 3,
    "sgld": 12,
    "csgld": 12,
    "metropolis": 12,
}  # draws; the others make as many as are asked for
TYPES = {"x": "number", "y": "number"}


def line(rows: int = 200) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, rows)
    return {"x": x, "y": 1000 + 300 * x + random.normal(0, 30, rows)}


def configure(method: MethodConfig, **options: object) -> ModelConfig:
    profiles = [ColumnProfile(name=n, type="number", min=-1.0, max=1e4) for n in TYPES]
    given: dict[str, object] = {"network": MLPConfig(hidden=(8, 6)), "training": QUICK}
    wanted = ModelConfig(target="y", method=method, **(given | options))  # type: ignore[arg-type]
    return resolve(wanted, profiles, 200)


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
    assert (answer.mc_error is None) == (kind in {"mle", "map", "ensemble"})
    np.testing.assert_allclose(answer.mean[:3], [850, 1000, 1150], atol=120)
    assert model.evaluate(line(40))["rmse"] < 120  # of 175 without x


def test_draws_are_what_the_summaries_are_made_of(model: TabularModel) -> None:
    answer = model.predict(X, PredictOptions(samples=20, return_draws=True))
    assert answer.draws is not None
    assert answer.draws.shape == (answer.samples, 4)
    np.testing.assert_allclose(answer.draws.mean(0), answer.mean)
    np.testing.assert_allclose(answer.draws.var(0), answer.variance["epistemic"], rtol=1e-6)


def test_a_rows_answer_depends_on_the_row_alone(model: TabularModel) -> None:
    """Up to the rounding of float32 products of another shape."""
    options = PredictOptions(samples=30, seed=3)
    together = model.predict(X, options)
    for row in range(4):
        alone = model.predict({"x": X["x"][row : row + 1]}, options)
        np.testing.assert_allclose(alone.mean, together.mean[row : row + 1], rtol=1e-5)
        np.testing.assert_allclose(
            alone.variance["total"], together.variance["total"][row : row + 1], rtol=1e-4
        )


def test_chunks_change_nothing(model: TabularModel) -> None:
    x = model.encode(X)
    small = replace(model.engine, memory_bytes=4096)
    fitted = model.fitted(0.0)
    (whole, _), (cut, _) = (e.outputs(fitted, x, 5, 30) for e in (model.engine, small))
    torch.testing.assert_close(whole, cut)


def test_a_stored_model_is_the_same_model(model: TabularModel, tmp_path: Path) -> None:
    write_model(model, tmp_path / "model")
    read = read_model(tmp_path / "model")
    before, after = (m.predict(X, PredictOptions(samples=30)) for m in (model, read))
    assert np.array_equal(before.mean, after.mean)
    assert np.array_equal(before.variance["total"], after.variance["total"])
    assert read.config == model.config
    assert read.num_bytes == model.num_bytes > 0


@pytest.mark.parametrize("stop_at", [17, 40])
def test_a_resumed_run_gives_the_same_model(kind: str, tmp_path: Path, stop_at: int) -> None:
    config = configure(METHODS[kind])
    whole = train(line(), TYPES, config)
    stops = dict.fromkeys(METHODS, 40) | dict.fromkeys(["mle", "map", "ensemble", "mc_dropout"], 30)
    asked = iter(range(100_000))
    with pytest.raises(Stopped):
        train(
            line(),
            TYPES,
            config,
            should_stop=lambda: next(asked) >= min(stop_at, stops[kind]),
            checkpoint_dir=tmp_path,
        )
    resumed = train(line(), TYPES, config, checkpoint_dir=tmp_path)
    states = (m.variant(0.0).state.tensors() for m in (whole, resumed))
    for mine, theirs in zip(*states, strict=True):
        assert torch.equal(mine, theirs)
    assert whole.variant(0.0).metrics == resumed.variant(0.0).metrics


def test_classes_and_their_entropies(kind: str) -> None:
    random = np.random.default_rng(1)
    x = random.normal(0, 1, 150)
    profiles = [
        ColumnProfile(name="x", type="number"),
        ColumnProfile(name="y", type="category", levels=("high", "low", "mid")),
    ]
    label = np.where(x > 0.5, "high", np.where(x < -0.5, "low", "mid")).astype(object)
    network = MLPConfig(hidden=(8,))
    wanted = ModelConfig(target="y", method=METHODS[kind], network=network, training=QUICK)
    config = resolve(wanted, profiles, 150)
    model = train({"x": x, "y": label}, {"x": "number", "y": "category"}, config)
    answer = model.predict({"x": np.array([-2.0, 2.0])}, PredictOptions(samples=20))
    assert answer.labels == ["low", "high"]
    assert answer.entropy is not None
    mutual = answer.entropy["epistemic"]
    assert (mutual > 0).all() if answer.samples > 1 else np.allclose(mutual, 0)


def test_what_a_method_cannot_do_is_refused(kind: str, model: TabularModel) -> None:
    with pytest.raises(InvalidInput, match="no sampler 'sobol'; it has monte_carlo"):
        model.predict(X, PredictOptions(sampler="sobol"))
    with pytest.raises(InvalidData, match=f"method '{METHODS[kind].kind}' has no σ") as caught:
        configure(METHODS[kind], pruning=(0.5,))
    assert caught.value.path == "/pruning"
