"""Graphs for other runtimes answer what the engine does, from the same draws."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from core.registry import archives
from credence.serving.exports import METADATA, convert
from models.artifact.files import write_model
from models.config import (
    ConvolutionalConfig,
    DropoutConfig,
    EnsembleConfig,
    FeatureConfig,
    MLPConfig,
    ModelConfig,
    TrainingConfig,
)
from models.features.columns import ColumnProfile
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

ROWS, SAMPLES = 80, 20
TYPES: dict[str, Any] = {
    "size": "number", "price": "number", "city": "category", "wet": "boolean", "day": "datetime",
}  # fmt: skip
TARGETS: dict[str, Any] = {"y": "number", "label": "category"}
CASES: dict[str, dict[str, Any]] = {
    "pruned": {"target": "y", "pruning": (0.5,)},
    "ensemble": {"target": "y", "method": EnsembleConfig(kind="ensemble", members=3)},
    "classes": {"target": "label", "method": DropoutConfig(kind="mc_dropout")},
    "images": {"target": "label", "network": ConvolutionalConfig(channels=(4,), hidden=(8,))},
}


def columns() -> dict[str, Any]:
    """Every type of column, with gaps; `price` is skewed, so that it gets a power transform."""
    random = np.random.default_rng(0)
    size = random.normal(size=ROWS)
    return {
        "size": np.where(np.arange(ROWS) % 9 == 0, np.nan, size),
        "price": np.exp(2 * random.normal(size=ROWS)),
        "city": random.choice(np.array(["Oslo", "Rome", None], object), ROWS),
        "wet": (random.random(ROWS) < 0.5).astype(float),
        "day": np.datetime64("2024-01-01T05", "us") + np.arange(ROWS) * np.timedelta64(7, "h"),
        "picture": random.random((ROWS, 6, 6)),
        "y": size + random.normal(size=ROWS),
        "label": random.choice(np.array(["a", "b", "c"], object), ROWS),
    }


def trained(**settings: Any) -> Any:
    types = TYPES | ({"picture": "tensor"} if "network" in settings else {})
    features = tuple(FeatureConfig(name=name, type=kind) for name, kind in types.items())
    brief = TrainingConfig(epochs=3, fine_tune_epochs=1, batch_size=32, learning_rate=0.05)
    plain = {"network": MLPConfig(hidden=(8,)), "pruning": ()}
    config = ModelConfig(training=brief, features=features, **plain | settings)
    levels = {"category": ("a", "b", "c")}
    profiles = [
        ColumnProfile(name=n, type=t, shape=(6, 6) if t == "tensor" else None, levels=levels.get(t))
        for n, t in (types | TARGETS).items()
    ]
    return train(columns(), types | TARGETS, resolve(config, profiles, ROWS))


def raw(description: dict[str, Any]) -> list[np.ndarray]:
    """What the graph takes, made by what its description says."""
    table = columns()
    for feature in description["features"]:
        values = table[feature["name"]]
        if feature["type"] == "category":
            codes = {level: i for i, level in enumerate(feature["levels"])} | {None: np.nan}
            table[feature["name"]] = np.array([codes.get(v, -1) for v in values], float)
        elif feature["type"] == "datetime":
            table[feature["name"]] = values.astype("datetime64[us]").astype(np.int64).astype(float)
    scalars = [f["name"] for f in description["features"] if f["type"] != "tensor"]
    table["features"] = np.stack([table[name] for name in scalars], axis=1)
    tensors = {name: table[name].astype(np.float32) for name in description["inputs"][1:]}
    return [{**table, **tensors}[name] for name in description["inputs"]]


GATE = "ensemble"  # the others take 30 seconds


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=() if c == GATE else pytest.mark.slow) for c in CASES]
)
def test_graphs_answer_what_the_engine_does(case: str, tmp_path: Path) -> None:
    """From the same draws. Answers are float32, whose rounding is 6e-8; a difference of nearly
    equal means, the epistemic variance, loses two digits more.
    """
    model, prune = trained(**CASES[case]), 0.5 if case == "pruned" else 0.0
    write_model(model, tmp_path / "model")
    archive = tmp_path / "model.tar"
    archive.write_bytes(b"".join(archives.pack(tmp_path / "model")))
    asked = PredictOptions(samples=SAMPLES, prune=prune, return_draws=True)
    answer = model.predict(columns(), asked)
    if model.classes is None:
        expected = {"mean": answer.draws.mean(0), "epistemic_variance": answer.draws.var(0)}
    else:
        entropy = answer.entropy
        expected = {"probabilities": answer.mean, "predictive_entropy": entropy["total"]}

    def check(found: dict[str, Any]) -> None:
        for name, wanted in expected.items():
            error = np.abs(np.asarray(found[name]) - wanted).max()
            assert error < 1e-5 * np.abs(wanted).max(), name

    extra, path = {METADATA: ""}, tmp_path / "model.pt2"
    convert(archive, path, "torch", samples=SAMPLES, prune=prune)
    program = torch.export.load(path, extra_files=extra)
    about = json.loads(extra[METADATA])
    inputs = raw(about)
    found = program.module()(*map(torch.from_numpy, inputs))
    check(dict(zip(about["outputs"], found, strict=True)))

    path = tmp_path / "model.onnx"
    convert(archive, path, "onnx", samples=SAMPLES, prune=prune)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = onnxruntime.InferenceSession(path)
    by_name = dict(zip(about["inputs"], inputs, strict=True))
    given = {one.name: by_name[one.name] for one in session.get_inputs()}
    check(dict(zip(about["outputs"], session.run(about["outputs"], given), strict=True)))
    one = session.run(about["outputs"], {name: values[:1] for name, values in given.items()})
    assert all(len(values) == 1 for values in one), "any number of rows"
