"""Exports of small models against the engine that predicts: prints the largest relative errors.

    python -m tests.credence.commands.export_cases FOLDER

A process of its own, because tracing does not get along with types that are checked at every call.
"""

import json
import logging
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

from core.registry import archives
from credence.serving.exports import METADATA, convert
from models.artifact.files import write_model
from models.config import (
    ConvolutionalConfig,
    DropoutConfig,
    EnsembleConfig,
    FeatureConfig,
    LaplaceConfig,
    LikelihoodConfig,
    MethodConfig,
    MLPConfig,
    ModelConfig,
    SWAGConfig,
    TrainingConfig,
)
from models.config.model import ShapedKind
from models.features.columns import ColumnProfile, Columns
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

ROWS, SAMPLES = 80, 20
IMAGES = ConvolutionalConfig(channels=(4,), hidden=(8,))
TYPES = {
    "size": "number", "price": "number", "city": "category", "wet": "boolean", "day": "datetime",
}  # fmt: skip
BRIEF = TrainingConfig(epochs=3, fine_tune_epochs=1, batch_size=32, learning_rate=0.05)


def columns() -> tuple[Columns, dict[str, str]]:
    """Every type of column, with gaps; `price` is skewed, so that it gets a power transform."""
    random = np.random.default_rng(0)
    size = random.normal(size=ROWS)
    table: dict[str, np.ndarray] = {
        "size": np.where(np.arange(ROWS) % 9 == 0, np.nan, size),
        "price": np.exp(2 * random.normal(size=ROWS)),
        "city": random.choice(np.array(["Oslo", "Rome", None], object), ROWS),
        "wet": (random.random(ROWS) < 0.5).astype(float),
        "day": np.datetime64("2024-01-01T05", "us") + np.arange(ROWS) * np.timedelta64(7, "h"),
        "picture": random.random((ROWS, 6, 6)),
        "y": size + random.normal(size=ROWS),
        "count": random.poisson(2.0, ROWS).astype(float),
        "label": random.choice(np.array(["a", "b", "c"], object), ROWS),
    }
    return table, TYPES | {
        "picture": "tensor",
        "y": "number",
        "count": "number",
        "label": "category",
    }


def trained(target: str, method: MethodConfig | None = None, **settings: Any) -> TabularModel:
    table, types = columns()
    features = tuple(
        FeatureConfig(name=n, type=t)  # type: ignore[arg-type]
        for n, t in TYPES.items()
        if n != target
    )
    if "network" in settings:
        features += (FeatureConfig(name="picture", type="tensor"),)
    chosen = {"network": MLPConfig(hidden=(8,)), "pruning": (), "features": features} | settings
    if method is not None:
        chosen["method"] = method
    config = ModelConfig(target=target, training=BRIEF, **chosen)
    profiles = [
        ColumnProfile(name=n, type=t, shape=(6, 6) if t == "tensor" else None,
                      levels=("a", "b", "c") if t == "category" else None)
        for n, t in types.items()
    ]  # fmt: skip
    model = train(table, types, resolve(config, profiles, ROWS))
    assert isinstance(model, TabularModel)
    return model


def shaped(target: str, kind: ShapedKind) -> TabularModel:
    method = EnsembleConfig(kind="ensemble", members=3)
    return trained(target, method, likelihood=LikelihoodConfig(kind=kind))


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "local": (lambda: trained("y", pruning=(0.5,)), {}),
    "pruned": (lambda: trained("y", pruning=(0.5,)), {"prune": 0.5}),
    "mean": (lambda: trained("y", likelihood="homoscedastic"), {"posterior": "mean"}),
    "shaped": (lambda: shaped("price", "mixture"), {}),
    "student": (lambda: shaped("price", "student"), {}),
    "count": (lambda: shaped("count", "count"), {}),
    "normal": (lambda: shaped("price", "gaussian"), {}),
    "ensemble": (lambda: trained("y", EnsembleConfig(kind="ensemble", members=3)), {}),
    "dropout": (lambda: trained("label", DropoutConfig(kind="mc_dropout")), {}),
    "swag": (lambda: trained("label", SWAGConfig(kind="swag", epochs=3)), {}),
    "laplace": (lambda: trained("label", LaplaceConfig(kind="laplace")), {}),
    "linearised": (lambda: trained("y", LaplaceConfig(kind="laplace", over="all")), {}),
    "images": (lambda: trained("label", network=IMAGES), {}),
}  # fmt: skip


def raw(model: TabularModel, description: dict[str, Any], names: list[str]) -> list[np.ndarray]:
    """What the graph takes, made by what its description says."""
    table = dict(columns()[0])
    for feature in description["features"]:
        values = table[feature["name"]]
        if feature["type"] == "category":
            codes = {level: i for i, level in enumerate(feature["levels"])} | {None: np.nan}
            table[feature["name"]] = np.array([codes.get(v, -1) for v in values], float)
        elif feature["type"] == "datetime":
            table[feature["name"]] = values.astype("datetime64[us]").astype(np.int64).astype(float)
    scalars = [f["name"] for f in description["features"] if f["type"] != "tensor"]
    features = np.stack([table[name] for name in scalars], axis=1)
    return [features if name == "features" else table[name].astype(np.float32) for name in names]


def expected(model: TabularModel, options: dict[str, Any]) -> dict[str, np.ndarray]:
    """The engine's answer from the same draws; a method without whole draws gives those alone."""
    table, prune = columns()[0], options.get("prune", 0.0)
    if options.get("posterior") == "mean":
        state = model.variant(0.0).state
        still = torch.full_like(state.posterior.rho, -100.0)  # type: ignore[union-attr]
        posterior = type(state.posterior)(state.posterior.loc, still)  # type: ignore[union-attr]
        frozen = type(state)(posterior, state.point)  # type: ignore[union-attr,call-arg]
        model = model.with_variants({0.0: replace(model.variant(0.0), state=frozen)})
    asked = PredictOptions(samples=SAMPLES, prune=prune, return_draws=True)
    answer = model.predict(table, asked)
    assert answer.draws is not None
    if model.classes is not None:
        entropy = answer.entropy or {}
        return {
            "probabilities": answer.mean,
            "predictive_entropy": entropy["total"],
            "expected_entropy": entropy["aleatoric"],
        }
    found = {"mean": answer.draws.mean(0), "epistemic_variance": answer.draws.var(0)}
    if model.engine.whole_draws or options.get("posterior") == "mean":
        found["aleatoric_variance"] = answer.variance["aleatoric"]
    return found


def error(found: np.ndarray, wanted: np.ndarray) -> float:
    """Relative to the largest value of its kind."""
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-12))


def run(name: str, folder: Path) -> dict[str, float]:
    make, options = CASES[name]
    model = make()
    write_model(model, folder / name)
    archive = folder / f"{name}.tar"
    archive.write_bytes(b"".join(archives.pack(folder / name)))
    wanted = expected(model, options)
    errors = {}
    for kind in ("torch", "onnx"):
        path = folder / f"{name}.{kind}"
        convert(archive, path, kind, **{"samples": SAMPLES} | options)  # type: ignore[arg-type]
        answers = answer_of(path, model) if kind == "torch" else onnx_answer_of(path, model)
        for output, value in wanted.items():
            errors[f"{name} {kind} {output}"] = error(answers[output], value)
    return errors


def answer_of(path: Path, model: TabularModel) -> dict[str, np.ndarray]:
    extra = {METADATA: ""}
    program = torch.export.load(path, extra_files=extra)
    description = json.loads(extra[METADATA])
    found = program.module()(*map(torch.from_numpy, raw(model, description, description["inputs"])))
    return dict(zip(description["outputs"], [f.numpy() for f in found], strict=True))


def onnx_answer_of(path: Path, model: TabularModel) -> dict[str, np.ndarray]:
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = onnxruntime.InferenceSession(path)
    description = json.loads(session.get_modelmeta().custom_metadata_map["credence"])
    names = [given.name for given in session.get_inputs()]
    inputs = dict(zip(names, raw(model, description, names), strict=True))
    outputs = [output.name for output in session.get_outputs()]
    one = session.run(outputs, {name: values[:1] for name, values in inputs.items()})
    assert all(len(values) == 1 for values in one), "any number of rows"
    return dict(zip(outputs, session.run(outputs, inputs), strict=True))


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    names = sys.argv[2:] or list(CASES)
    found: dict[str, float] = {}
    for case in names:
        found |= run(case, Path(sys.argv[1]))
    print(json.dumps(found))  # noqa: T201
