"""Models of every method, trained on small tables, and the alarms that fresh rows raise."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.verification.alarms import WINDOW, Labels, drift_alarms, labelled
from models.config import (
    BBBConfig,
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
from models.evaluation.exact_tests import highest_mean, independent_rows
from models.features.columns import ColumnProfile, Columns
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

METHODS: dict[str, MethodConfig] = {
    "bbb": BBBConfig(),
    "map": MAPConfig(kind="map"),
    "mle": MLEConfig(kind="mle"),
    "ensemble": EnsembleConfig(kind="ensemble", members=3),
    "mc_dropout": DropoutConfig(kind="mc_dropout"),
    "swag": SWAGConfig(kind="swag", epochs=5, rank=3),
    "laplace": LaplaceConfig(kind="laplace"),
    "sgld": SGLDConfig(kind="sgld", chains=2, draws=10, burn_in=50, thinning=5),
    "csgld": CyclicalSGLDConfig(kind="csgld", chains=2, cycles=2, cycle_steps=50, draws=5),
    "metropolis": MetropolisConfig(kind="metropolis", chains=2, draws=10, burn_in=100, thinning=5),
}
TABLES = (60, 100, 200)  # rows
_EPOCHS = 30  # far too few to be good: the rates must hold for any model


@dataclass(frozen=True)
class Watched:
    """A trained model, and what fresh rows like those of training raised."""

    method: str
    labels: Labels
    flags_alarm: bool
    share_alarm: bool


def watch_methods(full: bool) -> Sequence[Watched]:
    """Models of all methods, half of them classifiers; of two methods in the short form."""
    methods = METHODS if full else {name: METHODS[name] for name in ("map", "swag")}
    return [
        _watch(name, method, TABLES[seed % len(TABLES)], seed)
        for name, method in methods.items()
        for seed in range(18 if full else 3)
    ]


def _watch(name: str, method: MethodConfig, rows: int, seed: int) -> Watched:
    target = "y" if seed % 2 else "kind"
    model = _trained(method, _table(rows, seed), target, seed)
    fresh = _table(WINDOW, 1_000 + seed)
    options = model.resolve(PredictOptions(samples=100, intervals=()))
    scores = model.row_scores(model.encode(fresh), fresh[target], options)
    variant = model.variant(0.0)
    answer = model.predict(fresh, options)
    detector, usual = variant.detector, variant.metrics["epistemic_share"]
    assert detector is not None
    rate = detector.false_alarm_rate
    return Watched(
        name,
        labelled(scores, variant.metrics),
        drift_alarms(
            float(answer.out_of_distribution.mean()),
            WINDOW,
            rate,
            detector.highest_rate(),
            least=5 * rate,
        ),
        drift_alarms(
            float(answer["epistemic_share"].mean()),
            WINDOW,
            usual,
            highest_mean(usual, independent_rows(variant.metrics)),
            least=max(2 * usual, usual + 0.1),
        ),
    )


def _table(rows: int, seed: int) -> Columns:
    random = np.random.default_rng(seed)
    a, b = random.uniform(-1, 1, (2, rows))
    noise = random.normal(size=(2, rows))
    y = np.sin(3 * a) + b * a + 0.3 * (1 + b) * noise[0]
    kind = np.where(np.sin(3 * a) + 0.5 * noise[1] > 0, "up", "down").astype(object)
    return {"a": a, "b": b, "y": y, "kind": kind}


def _trained(method: MethodConfig, table: Columns, target: str, seed: int) -> TabularModel:
    types = {"a": "number", "b": "number", target: "number" if target == "y" else "category"}
    profiles = [ColumnProfile(name=name, type=kind) for name, kind in types.items()]
    config = ModelConfig(
        target=target,
        network=MLPConfig(hidden=(8,)),
        method=method,
        training=TrainingConfig(epochs=_EPOCHS, batch_size=32, validation_fraction=0.25, seed=seed),
    )
    columns = {name: table[name] for name in types}
    model = train(columns, types, resolve(config, profiles, len(table["a"]), once=True))
    assert isinstance(model, TabularModel)
    return model
