"""What two ranks train and one process repeats: `torchrun … -m
tests.models.training.distributed_cases DIR`.

171 training rows in mini-batches of 34 leave one row for the last: one rank has none of it then.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from models.artifact.files import write_model
from models.config import BBBConfig, FeatureConfig, MLPConfig, ModelConfig, TrainingConfig
from models.exceptions import Stopped
from models.features.columns import ColumnProfile
from models.fitting.distributed import process_group
from models.training.progress import Progress
from models.training.recipe import resolve
from models.training.train import TrainingRun, train

QUICK = TrainingConfig(epochs=4, batch_size=34, learning_rate=0.01, fine_tune_epochs=1)
STOP_AT = 15  # mini-batches: in the third epoch of six mini-batches each


@dataclass(frozen=True)
class Case:
    """A training of 211 rows; options are those of a `ModelConfig`."""

    options: dict[str, object] = field(default_factory=dict)
    classes: bool = False

    @property
    def columns(self) -> dict[str, np.ndarray]:
        random = np.random.default_rng(0)
        x, w = random.uniform(-1, 1, 211), random.uniform(0.5, 2, 211)
        y = 3 * x + random.normal(0, 0.1, 211)
        labels = np.where(y > 0, "high", np.where(y < -1, "low", "middle")).astype(object)
        return {"x": x, "w": w, "y": labels if self.classes else y}

    @property
    def types(self) -> dict[str, str]:
        return {"x": "number", "w": "number", "y": "category" if self.classes else "number"}

    @property
    def config(self) -> ModelConfig:
        options = {"training": QUICK, "pruning": (), **self.options}
        features = (FeatureConfig(name="x", type="number"),)
        network = MLPConfig(hidden=(16,))
        wanted = ModelConfig(target="y", features=features, network=network, **options)  # type: ignore[arg-type]
        profiles = [ColumnProfile(name=n, type=t, min=0, max=1) for n, t in self.types.items()]
        return resolve(wanted, profiles, 211)


CASES = {
    "weighted": Case({"weight": "w", "pruning": (0.5,)}),
    "classes": Case({"method": BBBConfig(estimator="weight")}, classes=True),
    "refit": Case({"training": replace(QUICK, stopping_fraction=0.1, refit=True)}),
}


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    with process_group("gloo", timedelta(seconds=60)):
        run_cases(folder)


def run_cases(folder: Path) -> None:
    leads = dist.get_rank() == 0
    for name, case in CASES.items():
        model = train(case.columns, case.types, case.config, TrainingRun(only(leads)))
        if leads:
            write_model(model, folder / name)
    stop_and_resume(folder, CASES["weighted"], leads=leads)


def stop_and_resume(folder: Path, case: Case, *, leads: bool) -> None:
    """Stops in the middle of an epoch; goes on from there to the end, then anew from a copy."""
    asked = iter(range(1000))

    def should_stop() -> bool:
        assert leads, "the first rank alone is asked"
        return next(asked) == STOP_AT

    kept = folder / "kept" if leads else folder / "not-here"  # as on another machine
    run = TrainingRun(checkpoint_dir=kept)
    with told(folder / f"stopped-{dist.get_rank()}", Stopped):
        train(case.columns, case.types, case.config, replace(run, should_stop=should_stop))
    if leads:
        shutil.copytree(kept, folder / "half")
    model = train(case.columns, case.types, case.config, run)
    if leads:
        write_model(model, folder / "resumed")
    else:
        assert not kept.exists()


def only(leads: bool) -> object:
    def report(progress: Progress) -> None:
        assert leads, "the first rank alone reports"

    return report


@contextmanager
def told(path: Path, kind: type[Exception]) -> Iterator[None]:
    """Leaves a file when the exception comes."""
    try:
        yield
    except kind as error:
        path.write_text(str(error))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
