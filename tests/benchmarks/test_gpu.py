"""The benchmark of a GPU runs on a processor by the same code, and says that it is none."""

import json

import pytest
import torch

from benchmarks.gpu import __main__ as command
from benchmarks.gpu.passes import SAMPLERS, growth, passes

pytestmark = [pytest.mark.training, pytest.mark.process]  # it asks git for the commit
SMALL = "3-8-2"
PROCESSOR = torch.device("cpu")


def test_recorded_passes_answer_as_plain_ones() -> None:
    pairs = passes(SMALL, PROCESSOR)
    assert len(pairs) == 3 * len(SAMPLERS)
    pair = pairs[f"recorded, moments, 8 × {SMALL}"]
    assert pair.ours() > 0
    assert pair.reference() > 0


def test_batches_grow_in_steps_of_eight() -> None:
    found = growth(SMALL, PROCESSOR)
    assert list(found["seconds"])[:2] == [1, 8]
    assert found["worth_joining"] in found["seconds"]


def test_a_processor_is_said_to_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "QUICK_NETWORKS", ())
    content = json.loads(json.dumps(command.measure(PROCESSOR, quick=True)))
    assert not content["is_gpu"]
    assert "No GPU is here." in command.report(content)
    content |= {"ratios": {"recorded": 0.5}, "device": "a card", "is_gpu": True}
    content["growth"] = {"3-8-2": {"seconds": {"1": 0.001}, "worth_joining": 1}}
    assert command.report(content).startswith("On a card.")
