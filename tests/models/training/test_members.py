"""Several members end to end: training, artifact, prediction, pruning and export, by method."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.artifact import export
from models.artifact.files import read_model, write_model
from models.config import (
    BBBConfig,
    DropoutConfig,
    EnsembleConfig,
    GaussianPriorConfig,
    LaplaceConfig,
    MethodConfig,
    MLPConfig,
    ModelConfig,
    PartConfig,
    RecurrentConfig,
    SGLDConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData
from models.networks import Stack
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.tabular.row_recipe import with_members
from tests.models.training.fitting import trained

PARTS = (
    PartConfig(members=2, hidden=(6,), inputs="plain", skip=True),
    PartConfig(members=1, hidden=(5, 4), inputs="piecewise", kl_weight=0.5),
)
METHODS: dict[str, MethodConfig] = {
    "bbb": BBBConfig(prior=GaussianPriorConfig(sigma="per_input")),
    "ensemble": EnsembleConfig(kind="ensemble", members=2),
    "mc_dropout": DropoutConfig(kind="mc_dropout"),
    "laplace": LaplaceConfig(kind="laplace"),
    "sgld": SGLDConfig(kind="sgld", chains=2, draws=5, burn_in=10, thinning=2),
}
STORED = {"ensemble": 6, "sgld": 30}


def _columns() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.normal(size=(160, 2))
    y = np.sin(2 * x[:, 0]) + 0.2 * random.normal(size=160)
    return {"a": x[:, 0], "b": x[:, 1], "y": y, "c": np.where(y > 0, "up", "down").astype(object)}


def _train(
    target: str, method: MethodConfig, likelihood: str | None = None, **settings: object
) -> TabularModel:
    options: dict[str, object] = {
        "network": MLPConfig(parts=PARTS),
        "training": TrainingConfig(epochs=3, batch_size=64, fine_tune_epochs=1, background=0),
        "pruning": (0.5, 0.9) if isinstance(method, BBBConfig) else None,
    }
    columns = {name: _columns()[name] for name in ("a", "b", target)}
    return trained(
        columns, target=target, method=method, likelihood=likelihood, **options | settings
    )


@pytest.mark.parametrize(("name", "target"), [("bbb", "c"), *((name, "y") for name in METHODS)])
def test_every_method_trains_stores_and_exports_members(
    name: str, target: str, tmp_path: Path
) -> None:
    """A model that was read predicts the same; the exported graph has the samples that it says."""
    model = _train(target, METHODS[name], "homoscedastic" if target == "y" else None)
    network = model.network
    assert isinstance(network, Stack)
    written = write_model(model, tmp_path / "model")
    again = read_model(tmp_path / "model")
    assert isinstance(again, TabularModel)
    rows = {key: values[:4] for key, values in _columns().items()}
    for prune in model.variants:
        options = PredictOptions(prune=prune, samples=20)
        before, after = (one.predict(rows, one.resolve(options)) for one in (model, again))
        assert before.samples == after.samples == min(20, STORED.get(name, 20))
        # Kernels of a model that was read are measured, and may round otherwise.
        np.testing.assert_allclose(before.mean, after.mean, rtol=0.02, atol=2e-3)
    exported = export.build(again, samples=20)
    assert exported.description["samples"] == min(21, STORED.get(name, 21))
    outputs = exported.module(*exported.example)
    assert all(bool(values.isfinite().all()) and len(values) == 3 for values in outputs)
    if name in STORED:
        x = torch.tensor(np.stack([rows["a"], rows["b"]], 1))
        whole = again.predict(rows, again.resolve(PredictOptions(samples=100)))
        mean = export.build(again, samples=100).module(x)[0]
        np.testing.assert_allclose(mean.numpy(), whole.mean, rtol=1e-4, atol=1e-5)
    if isinstance(METHODS[name], BBBConfig):
        sizes = [written.variants_by_prune[prune].num_bytes for prune in (0.0, 0.5, 0.9)]
        assert sizes[1] < 0.6 * sizes[0]
        assert sizes[2] < 0.25 * sizes[0]


@pytest.mark.parametrize(
    "settings",
    [
        {"network": MLPConfig(parts=PARTS)},
        {"network": RecurrentConfig(kind="gru")},
        {"task": "forecasting", "network": MLPConfig(hidden=(5,))},
        {"method": METHODS["ensemble"], "members": 1},
    ],
)
def test_members_that_cannot_be_are_refused(settings: dict[str, object]) -> None:
    config = replace(ModelConfig(target="y", members=4), **settings)  # type: ignore[arg-type]
    with pytest.raises(InvalidData) as found:
        with_members(config, config.task or "regression")
    assert found.value.path == "/members"
