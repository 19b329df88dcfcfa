"""What a job is to do: strict, and the same after a journey through JSON."""

from typing import Any

import pytest
from pydantic import ValidationError

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


@pytest.mark.parametrize(
    ("change", "location"),
    [
        ({"model": "Concrete"}, ("model",)),
        ({"alias": "3"}, ("alias",)),
        ({"extra": 1}, ("extra",)),
        ({"config": {"target": "y", "epochs": 3}}, ("config", "epochs")),
        ({"metadata": {"x": "a" * 20_000}}, ("metadata",)),
        ({"metadata": {"x": 2**70}}, ("metadata",)),
        ({"metadata": {"x": "\ud800"}}, ("metadata",)),
    ],
)
def test_a_wrong_spec_is_refused_by_place(
    change: dict[str, Any], location: tuple[str, ...]
) -> None:
    with pytest.raises(ValidationError) as refused:
        TrainSpec.model_validate(TRAIN | change)
    assert refused.value.errors()[0]["loc"] == location


@pytest.mark.parametrize("change", [{"version": 0}, {"prune": 1.0}, {"prune": float("nan")}])
def test_an_evaluation_has_ranges(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EvaluateSpec.model_validate(EVALUATE | change)
