"""Files without a row are found, and none that a row refers to, or yet may."""

from pathlib import Path

import pytest

from core.database.database import Database, migrate
from core.database.statements import installation_id
from core.datasets.datasets import Datasets
from core.jobs.jobs import Job, Jobs, JobStatus
from core.storage import ArtifactStore
from core.storage.orphans import Orphans
from tests.core.conftest import claimed


@pytest.fixture
def orphans(database: Database, store: ArtifactStore) -> Orphans:
    return Orphans(database, store)


def test_an_attempts_model_is_an_orphan_once_the_attempt_is_over(
    jobs: Jobs, job: Job, store: ArtifactStore, orphans: Orphans, artifact: Path
) -> None:
    claim = claimed(jobs, job.id)
    store.put_directory(f"models/square/{job.id}-1", artifact)
    assert list(orphans.find()) == [], "it may be published yet"
    jobs.release(claim)
    assert list(orphans.find()) == [f"models/square/{job.id}-1"]
    claimed(jobs, job.id)
    assert list(orphans.find()) == [f"models/square/{job.id}-1"], "the next attempt has its own"


def test_checkpoints_go_with_the_last_hope(
    *,
    jobs: Jobs,
    job: Job,
    datasets: Datasets,
    store: ArtifactStore,
    orphans: Orphans,
    artifact: Path,
) -> None:
    store.put_directory(f"checkpoints/{job.id}/000001-000001", artifact)
    assert list(orphans.find()) == []
    jobs.cancel(job.id)
    assert list(orphans.find()) == [], "it can be resumed"
    datasets.delete(job.dataset)
    store.put_directory(f"checkpoints/{job.id}/000001-000002", artifact)  # of a worker come late
    assert set(orphans.find()) == {f"checkpoints/{job.id}"}


def test_parts_of_results_are_kept_by_the_attempt_that_made_them(
    jobs: Jobs, batch: Job, store: ArtifactStore, orphans: Orphans, artifact: Path
) -> None:
    first, second = jobs.queued_ids(batch.id)[:2]
    for chunk, attempt in ((0, 1), (0, 2), (1, 1)):
        path = f"results/{batch.id}/{chunk:04d}-{attempt}.parquet"
        store.put_file(path, artifact / "model.json")
    jobs.finish(claimed(jobs, first), JobStatus.SUCCEEDED)
    claimed(jobs, second)
    assert list(orphans.find()) == [f"results/{batch.id}/0000-2.parquet"]


def test_a_data_sets_file_without_a_row_is_told_apart(
    datasets: Datasets, dataset_id: str, store: ArtifactStore, orphans: Orphans, artifact: Path
) -> None:
    with orphans.database.begin() as session:
        mine = installation_id(session)
    for key in (f"datasets/{mine}-ds_new.arrow", "datasets/00ff00ff00ff-ds_new.arrow"):
        store.put_file(key, artifact / "model.json")
    assert orphans.find_rowless() == [f"datasets/{mine}-ds_new.arrow"]
    assert datasets.get(dataset_id)
    assert list(orphans.find()) == []


def test_what_is_another_databases_is_left_alone(
    store: ArtifactStore, datasets: Datasets, orphans: Orphans, artifact: Path, tmp_path: Path
) -> None:
    """A worker that was started with the wrong database must not tidy up the right one's store."""
    dataset, _ = datasets.add_columns("mine", {"x": [1.0]})
    for key in ("models/m/job_00ff-1", "checkpoints/job_00ff/000001-000001"):
        store.put_directory(key, artifact)
    store.put_file("results/job_00ff/0000-1.parquet", artifact / "model.json")
    empty = Database(f"sqlite:///{tmp_path / 'empty.db'}")
    migrate(empty)
    stranger = Orphans(empty, store)
    assert list(stranger.find()) == []
    assert stranger.find_rowless() == []
    assert list(orphans.find()) == []
    datasets.delete(dataset.id)
    assert orphans.find_rowless() == []
