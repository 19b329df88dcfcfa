"""Comparisons: several trainings under one job, which ends as they do; names and table."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import sem

from core.datasets.datasets import Datasets
from core.jobs import comparison
from core.jobs.jobs import Claim, CompareSpec, Job, Jobs, JobStatus, MethodSpec
from core.jobs.row_scores import RowScoreFiles, RowScores
from core.registry.registry import Registry
from core.storage import ArtifactStore
from core.storage.orphans import Orphans
from models.config import (
    BBBConfig,
    MAPConfig,
    MethodConfig,
    ModelConfig,
    SWAGConfig,
)
from tests.core.conftest import claimed, statuses

ERROR = {"code": "diverged", "message": "the loss is no number"}
METHODS: tuple[MethodConfig, ...] = (BBBConfig(), SWAGConfig(kind="swag"), MAPConfig(kind="map"))
MEASURED = {"log_likelihood": -1.5, "rmse": 2.0, "coverage": {"0.9": 0.88}, "predict_ms": 0.5}
Publish = Callable[..., None]


@pytest.fixture
def strange_id(datasets: Datasets) -> str:
    return datasets.add_columns("strange", {"x": [100.0], "y": [0.0]})[0].id


@pytest.fixture
def whole(jobs: Jobs, dataset_id: str, strange_id: str) -> Job:
    """bbb, swag and map on one data set."""
    common = {"model": "square", "dataset": dataset_id, "out_of_distribution": strange_id}
    specs = [
        MethodSpec(**common, name=name, config=ModelConfig(target="y", method=method))
        for name, method in zip(comparison.names(METHODS), METHODS, strict=True)
    ]
    whole = CompareSpec(**common, config=specs[0].config, methods=METHODS)
    return jobs.create_comparison(whole, specs)


@pytest.fixture
def publish(jobs: Jobs, registry: Registry, artifact: Path) -> Publish:
    """Claim a training and end it as a worker does that has a model."""

    def act(training: Job, **metrics: Any) -> None:
        description = {"metrics": MEASURED | metrics}
        claim = claimed(jobs, training.id)
        registry.publish(claim, "square", artifact, description, training.dataset)

    return act


def test_a_training_that_fails_is_named(jobs: Jobs, whole: Job, publish: Publish) -> None:
    first, second, third = jobs.parts(whole.id)
    jobs.finish(claimed(jobs, first.id), JobStatus.FAILED, error=ERROR)
    assert statuses(jobs, whole) == ["failed", "queued", "queued"]
    publish(second)
    jobs.finish(claimed(jobs, third.id), JobStatus.FAILED, error=ERROR)
    failed = jobs.get(whole.id)
    assert failed.status is JobStatus.FAILED
    message = "bbb: the loss is no number; map: the loss is no number"
    assert failed.error == {"code": "diverged", "message": message}
    rows = comparison.table(jobs, whole.id)
    assert [row["log_likelihood"] for row in rows] == [None, -1.5, None]
    assert rows[0]["error"] == ERROR
    resumed = jobs.resume(whole.id)
    assert (resumed.status, resumed.error) == ("queued", None)
    assert statuses(jobs, whole) == ["queued", "succeeded", "queued"]
    for training in (first, third):
        publish(training)
    assert jobs.get(whole.id).status is JobStatus.SUCCEEDED


def test_methods_are_compared_by_pairs_of_the_same_rows(
    jobs: Jobs, whole: Job, publish: Publish, store: ArtifactStore, tmp_path: Path
) -> None:
    """The differences, their errors and the verdicts that scipy has; other rows make no pairs."""
    files, trainings = RowScoreFiles(store), jobs.parts(whole.id)
    generator = np.random.default_rng(0)
    common = generator.standard_normal(80)
    own = [common + gap + 0.5 * generator.standard_normal(80) for gap in (0.0, 0.05, -0.7)]
    for training, scores in zip(trainings, own, strict=True):
        publish(training)
        claim = Claim(training.id, 1, "worker-1")
        files.publish(claim, whole.id, RowScores("the rows", scores), tmp_path)
    rows = comparison.table(jobs, whole.id, files)
    best = int(np.argmax([scores.mean() for scores in own]))
    assert [row["verdict"] for row in rows].index("best") == best
    assert rows[2]["verdict"] == "worse"
    assert rows[1 - best]["verdict"] == "no difference"
    for row, scores in zip(rows, own, strict=True):
        assert row["compared_rows"] == 80
        assert row["difference"] == pytest.approx((own[best] - scores).mean())
        if row["verdict"] != "best":
            assert row["difference_error"] == pytest.approx(sem(own[best] - scores))
            assert row["optimism"] is None
    assert rows[best]["optimism"] > 0
    assert list(Orphans(jobs._database, store).find()) == []
    claim = Claim(trainings[2].id, 1, "worker-1")
    files.publish(claim, whole.id, RowScores("others", own[2]), tmp_path)
    assert {row["verdict"] for row in comparison.table(jobs, whole.id, files)} == {None}
