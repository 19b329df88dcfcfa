"""What a job is to do: strict, and the same after a journey through JSON."""

from typing import Any

from core.jobs.specs import EvaluateSpec, TrainSpec

TRAIN: dict[str, Any] = {
    "model": "concrete",
    "dataset": "ds_1",
    "config": {"target": "y", "method": {"kind": "bbb"}, "pruning": [0.5]},
    "metadata": {"team": ["a", 1, None]},
}
EVALUATE = {"model": "concrete", "dataset": "ds_1", "version": 1}


def test_a_spec_survives_json() -> None:
    spec = TrainSpec.model_validate(TRAIN)
    assert TrainSpec.model_validate_json(spec.model_dump_json()) == spec
    assert spec.config.pruning == (0.5,)
    assert EvaluateSpec.model_validate(EVALUATE).prune == 0.0
