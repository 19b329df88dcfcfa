"""What a trained model tells of simple methods on its rows."""

from typing import Any

import pytest

from core.context import Context
from core.exceptions import LostClaim
from core.jobs.jobs import JobStatus
from models.artifact.files import read_model
from models.model import TrainedModel
from tests.worker.baselines.tables import TYPES, table, train_on
from tests.worker.conftest import train_job
from worker.baselines import numbers, tables
from worker.baselines.adding import with_baselines
from worker.runner import JobRunner

KINDS = ["constant", "linear", "boosted_trees"]


def told(model: TrainedModel) -> dict[str, dict[str, Any]]:
    return {one.kind: one.metrics for one in model.baselines}


def test_a_model_that_learned_nothing_is_told_so() -> None:
    columns = table()
    model = with_baselines(train_on(columns), columns, TYPES)
    assert [one.kind for one in model.baselines] == KINDS
    found, own = told(model), model.variant(0.0).metrics
    assert {metrics["rows"] for metrics in found.values()} == {own["rows"]}
    assert found["linear"]["crps"] < found["constant"]["crps"]
    assert found["linear"]["crps"] < 0.7 * own["crps"]
    (note,) = (note for note in model.notes if note.startswith("a linear model"))
    assert "better than this model" in note
    assert f"CRPS {found['linear']['crps']:.4g} and {own['crps']:.4g}" in note
    assert all(one.rows == 270 for one in model.baselines)


def test_a_method_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: str, *_: Any) -> Any:
        if kind == "linear":
            raise ValueError("no")
        return score(kind, *_)  # type: ignore[arg-type]

    columns, score = table(), numbers.score_numbers
    model = train_on(columns)
    monkeypatch.setattr(tables, "score_numbers", refuse)
    assert list(told(with_baselines(model, columns, TYPES))) == ["constant", "boosted_trees"]
    monkeypatch.setattr(tables, "split_table", lambda *_: 1 / 0)
    assert with_baselines(model, columns, TYPES) is model


@pytest.mark.parametrize("answers", [1, 3])  # before the import, and between two fits
def test_a_job_that_another_worker_has_ends(answers: int) -> None:
    remaining = iter([False] * answers)

    def should_stop() -> bool:
        if (answer := next(remaining, None)) is None:
            raise LostClaim("another worker has the job")
        return answer

    columns = table()
    with pytest.raises(LostClaim):
        with_baselines(train_on(columns), columns, TYPES, should_stop)


def test_a_job_publishes_them(context: Context, dataset: str, runner: JobRunner) -> None:
    job = train_job(context, dataset)
    runner.wake()
    assert context.jobs.get(job.id).status is JobStatus.SUCCEEDED
    version = context.registry.get("line")
    assert [one["kind"] for one in version.description["baselines"]] == KINDS
    assert any("a linear model" in note for note in version.description["notes"])
    stored = read_model(context.registry.path(version))
    assert [one.kind for one in stored.baselines] == KINDS
