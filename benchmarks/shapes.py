"""Models to measure, named by the widths of their networks.

Speed does not depend on what a model has learned, so they train for two epochs on random rows.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models.artifact.files import read_model, write_model
from models.config import MLPConfig, ModelConfig, Task, TrainingConfig
from models.features.columns import ColumnProfile
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

INPUT, TARGET = "x", "y"
ROWS = 120


@dataclass(frozen=True)
class Shape:
    """Widths of a multilayer perceptron. Two outputs mean regression, more mean classes.

    >>> Shape.parse("13-50-50-2")
    Shape(inputs=13, hidden=(50, 50), outputs=2)
    """

    inputs: int
    hidden: tuple[int, ...]
    outputs: int

    @classmethod
    def parse(cls, name: str) -> "Shape":
        inputs, *hidden, outputs = map(int, name.split("-"))
        return cls(inputs, tuple(hidden), outputs)

    @property
    def task(self) -> Task:
        return "regression" if self.outputs == 2 else "classification"


def columns(shape: Shape) -> dict[str, np.ndarray]:
    """Random rows with one tensor column, because that is fast to encode."""
    random = np.random.default_rng(0)
    classes = np.arange(ROWS) % shape.outputs
    target = random.normal(size=ROWS) if shape.task == "regression" else classes.astype(float)
    return {INPUT: random.normal(size=(ROWS, shape.inputs)), TARGET: target}


def configure(shape: Shape, pruning: tuple[float, ...] = ()) -> ModelConfig:
    """The recipe's configuration for this network, with two epochs."""
    config = ModelConfig(
        target=TARGET,
        task=shape.task,
        network=MLPConfig(hidden=shape.hidden),
        training=TrainingConfig(epochs=2, fine_tune_epochs=0),
        pruning=pruning,
    )
    profiles = [
        ColumnProfile(name=INPUT, type="tensor", shape=(shape.inputs,)),
        ColumnProfile(name=TARGET, type="number"),
    ]
    return resolve(config, profiles, ROWS)


def build(shape: Shape, pruning: tuple[float, ...] = ()) -> TabularModel:
    """Train a model of this shape, in about a second."""
    types = {INPUT: "tensor", TARGET: "number"}
    return train(columns(shape), types, configure(shape, pruning))


def stored(shape: Shape, directory: Path, device: str = "cpu") -> TabularModel:
    """Build the model, write it to a directory and read it back."""
    write_model(build(shape), directory)
    return read_model(directory, device)
