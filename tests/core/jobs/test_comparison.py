"""Comparisons: several trainings under one job, which ends as they do; names and table."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import sem

from core.database.database import Database
from core.datasets.datasets import Datasets
from core.jobs import comparison
from core.jobs.jobs import Claim, CompareSpec, Job, Jobs, JobStatus, MethodSpec
from core.jobs.row_scores import RowScoreFiles, RowScores
from core.registry.registry import Registry
from core.storage import ArtifactStore
from core.storage.orphans import Orphans
from models.config import (
    BBBConfig,
    GaussianPriorConfig,
    KLConfig,
    MAPConfig,
    MethodConfig,
    ModelConfig,
    ScaleMixturePriorConfig,
    SGLDConfig,
    SWAGConfig,
)
from tests.core.jobs.claiming import claimed, states, statuses
from tests.core.together import at_once

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


def test_a_training_that_fails_stops_no_other_and_is_named(
    jobs: Jobs, whole: Job, publish: Publish
) -> None:
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


def test_reports_and_ends_at_once_leave_one_end(jobs: Jobs, whole: Job, database: Database) -> None:
    """Three workers report and finish at the same moment: nobody waits in a circle."""
    claims = [claimed(jobs, part.id, f"worker-{i}") for i, part in enumerate(jobs.parts(whole.id))]

    def work(index: int) -> None:
        mine = Jobs(database)
        for step in range(10):
            mine.report(claims[index], progress={"fraction": step / 10})
            mine.heartbeat(claims[index], 60)
        mine.finish(claims[index], JobStatus.SUCCEEDED, version=index + 1)

    at_once(work, 3)
    assert jobs.get(whole.id).status is JobStatus.SUCCEEDED
    assert states(jobs, whole) == ["queued", "running", "succeeded"]


def test_methods_are_named_by_what_sets_them_apart() -> None:
    chains = [SGLDConfig(kind="sgld", chains=n) for n in (4, 8)]
    named = comparison.names([MAPConfig(kind="map"), *chains])
    assert named == ["map", "sgld chains=4", "sgld chains=8"]
    learned = GaussianPriorConfig(sigma="auto")
    tempered = BBBConfig(prior=learned, kl=KLConfig(weight=0.1))
    mixture = BBBConfig(prior=ScaleMixturePriorConfig(kind="scale_mixture"))
    first, second = comparison.names([tempered, mixture])
    assert first == "bbb prior.kind=gaussian prior.sigma=auto kl.weight=0.1"
    assert second.startswith("bbb prior.kind=scale_mixture prior.pi=0.5")


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
