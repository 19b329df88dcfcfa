"""A training by two actors of a real Ray."""

import json
import threading
from pathlib import Path

import psutil
import pytest

from credence.engines.ranks import Arguments, TrainingFailed
from tests.engines.test_torchrun import ENDLESS, REQUEST, assert_trained_alone, folder, rows
from tests.waiting import wait_until

ray = pytest.importorskip("ray", reason="ray is not installed: make test-engines")
engine = pytest.importorskip("credence.engines.ray_torchrun")
pytestmark = [
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.filterwarnings("ignore"),  # of Ray about what it uses itself
]
__all__ = ["folder", "rows"]  # fixtures


def _arguments(folder: Path) -> Arguments:
    return Arguments(*map(str, (folder / "training.json", folder / "rows", folder / "m.tar")))


def test_two_actors_write_the_model_that_one_process_trains(folder: Path) -> None:
    engine.train(_arguments(folder), engine.Places(ranks=2, strategy="PACK"))
    assert_trained_alone(folder)


def test_a_lost_actor_ends_the_training_with_an_error_that_names_it(folder: Path) -> None:
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


def test_what_cannot_begin_is_named(folder: Path) -> None:
    places = engine.Places(ranks=3, cpus=2, seconds=0.5)
    with pytest.raises(TrainingFailed, match="no room for 3 ranks of 2 CPU and 0 GPU"):
        engine.train(_arguments(folder), places)
    (folder / "training.json").write_text(json.dumps({"target": "z"}))
    with pytest.raises(TrainingFailed, match=r"rank \d: /target: the data set has no column 'z'"):
        engine.train(_arguments(folder), engine.Places(ranks=1))
