"""Killed at a random mini-batch and run on by another worker: the same artifact, byte for byte."""

import random
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.context import Context
from core.jobs.jobs import Job, JobStatus, TrainSpec
from models.config import (
    BBBConfig,
    CyclicalSGLDConfig,
    EnsembleConfig,
    MethodConfig,
    MLPConfig,
    ModelConfig,
    RecurrentConfig,
    TrainingConfig,
)
from models.training.recipe import resolve
from tests.chaos.conftest import Stage

SHORT = TrainingConfig(epochs=8, batch_size=50, learning_rate=0.02, fine_tune_epochs=2)
METHODS: dict[str, MethodConfig] = {
    "bbb": BBBConfig(),
    "ensemble": EnsembleConfig(kind="ensemble", members=3),
    "csgld": CyclicalSGLDConfig(kind="csgld", chains=2, cycles=2, cycle_steps=20, draws=3),
}


def _numbers(stage: Stage, method: str) -> Job:
    config = ModelConfig(
        target="y",
        method=METHODS[method],
        network=MLPConfig(hidden=(8,)),
        training=SHORT,
        pruning=(0.5,) if method == "bbb" else (),
    )
    return _queued(stage.context, stage.dataset, config)


def _texts(context: Context, folder: Path) -> Job:
    generator = np.random.default_rng(0)
    words = [" ".join(generator.choice(list("abcdef"), 6)) for _ in range(120)]
    path = folder / "lines.txt"
    path.write_text("\n".join(words))
    dataset, _ = context.datasets.add("lines", "text/plain", path)
    network = RecurrentConfig(kind="gru", hidden=(8,))
    training = replace(SHORT, epochs=4, batch_size=8)
    config = ModelConfig(target="text", network=network, training=training, pruning=(0.5,))
    return _queued(context, dataset.id, config)


def _queued(context: Context, dataset: str, wanted: ModelConfig) -> Job:
    stored = context.datasets.get(dataset)
    config = resolve(
        wanted, stored.columns, stored.rows, lambda names: context.datasets.columns(dataset, names)
    )
    spec = TrainSpec(model="line", dataset=dataset, config=config)
    return context.jobs.create(spec)


@pytest.mark.parametrize("kind", [*METHODS, "language_model"])
def test_a_killed_training_ends_as_an_undisturbed_one(
    stage: Stage, tmp_path: Path, kind: str
) -> None:
    context = stage.context

    def make() -> Job:
        return _texts(context, tmp_path) if kind == "language_model" else _numbers(stage, kind)

    undisturbed, killed = make(), make()
    stage.runner.wake()
    look = random.Random(kind).randrange(5, 25)
    often = {"CREDENCE_CHECKPOINT_SECONDS": "0.000001"}
    code = stage.run("train_and_die", often, deadly_look=look)
    assert code == -signal.SIGKILL, stage.log.read_text()
    assert context.checkpoints.exists(killed.id)
    stage.runner.wake()
    done = context.jobs.get(killed.id)
    assert (done.status, done.attempt) == (JobStatus.SUCCEEDED, 2)
    ours, theirs = (
        {path.name: path.read_bytes() for path in context.registry.path(v).glob("*.safetensors")}
        for v in context.registry.versions("line")
    )
    assert ours == theirs
    assert context.jobs.get(undisturbed.id).metrics == done.metrics
