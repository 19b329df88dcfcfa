"""A training by two actors of a real Ray."""

import json
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
import torch

from core.registry import archives
from credence.engines import files
from credence.engines.ranks import Arguments, TrainingFailed
from credence.engines.training import read_training
from models.artifact.files import read_model
from models.training.train import train
from tests.engines.test_torchrun import ENDLESS, REQUEST, ROUNDING, folder, rows
from tests.waiting import wait_until

ray = pytest.importorskip("ray", reason="ray is not installed: make test-engines")
engine = pytest.importorskip("credence.engines.ray_torchrun")
pytestmark = [
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.process,
    pytest.mark.server,
    pytest.mark.training,
    pytest.mark.filterwarnings("ignore"),  # of Ray about what it uses itself
]
__all__ = ["folder", "rows"]  # fixtures


def _arguments(folder: Path) -> Arguments:
    return Arguments(*map(str, (folder / "training.json", folder / "rows", folder / "m.tar")))


def test_two_actors_write_the_model_that_one_process_trains(folder: Path, rows: pa.Table) -> None:
    engine.train(_arguments(folder), engine.Places(ranks=2, strategy="PACK"))
    archives.unpack(folder / "m.tar", folder / "model", 2**30)
    training = read_training(files.read_table(str(folder / "rows")), REQUEST)
    alone = train(training.columns, training.types, training.config)
    models = read_model(folder / "model"), alone
    both = [one.variant(0.0).state.posterior.distribution().moments() for one in models]
    for found, wanted in zip(*both, strict=True):
        torch.testing.assert_close(found, wanted, rtol=ROUNDING, atol=ROUNDING)


def test_a_lost_actor_ends_the_training_with_an_error_that_names_it(folder: Path) -> None:
    import threading

    (folder / "training.json").write_text(json.dumps(REQUEST | {"training": ENDLESS}))
    checkpoints = folder / "checkpoints"
    arguments = Arguments(**vars(_arguments(folder)) | {"checkpoints": checkpoints})
    killer = threading.Thread(target=_kill_rank, args=(checkpoints,))
    killer.start()
    with pytest.raises(TrainingFailed, match=r"rank \d was lost: "):
        engine.train(arguments, engine.Places(ranks=2, strategy="PACK"))
    killer.join()
    assert not (folder / "m.tar").exists()


def _kill_rank(checkpoints: Path) -> None:
    """Kill an actor once both train."""
    wait_until(lambda: any(checkpoints.glob("*.safetensors")))
    found = [p for p in psutil.process_iter(["cmdline"]) if "ray::Rank" in str(p.info["cmdline"])]
    found[-1].kill()


def test_what_has_no_room_says_what_there_is(folder: Path) -> None:
    places = engine.Places(ranks=3, cpus=2, seconds=0.5)
    with pytest.raises(TrainingFailed, match="no room for 3 ranks of 2 CPU and 0 GPU"):
        engine.train(_arguments(folder), places)


def test_a_wrong_setting_is_named(folder: Path) -> None:
    (folder / "training.json").write_text(json.dumps({"target": "z"}))
    with pytest.raises(TrainingFailed, match=r"rank \d: /target: the data set has no column 'z'"):
        engine.train(_arguments(folder), engine.Places(ranks=1))
