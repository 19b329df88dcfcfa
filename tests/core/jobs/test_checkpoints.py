"""Checkpoints in the store: the newest counts, of whoever has the job."""

from pathlib import Path

import pytest

from core.exceptions import LostClaim
from core.jobs.checkpoints import Checkpoints
from core.jobs.jobs import Claim, Job, Jobs
from core.storage import ArtifactStore
from tests.core.jobs.claiming import claimed


@pytest.fixture
def checkpoints(jobs: Jobs, any_store: ArtifactStore) -> Checkpoints:
    return Checkpoints(jobs, any_store)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    return path


def save(checkpoints: Checkpoints, claim: Claim, folder: Path, content: str) -> None:
    (folder / "fit.safetensors.new").write_text("half")
    (folder / "fit.next").write_text(content)
    (folder / "fit.next").replace(folder / "fit.safetensors")
    checkpoints.save(claim, folder)


def fetched(checkpoints: Checkpoints, job: Job, folder: Path) -> dict[str, str] | None:
    path = folder / "fetched"
    if not checkpoints.fetch(job.id, path):
        assert not path.exists()
        return None
    return {file.name: file.read_text() for file in path.iterdir()}


def test_the_newest_is_fetched_and_the_older_are_gone(
    checkpoints: Checkpoints, jobs: Jobs, job: Job, any_store: ArtifactStore, folder: Path
) -> None:
    assert fetched(checkpoints, job, folder) is None
    claim = claimed(jobs, job.id)
    for number in range(12):
        save(checkpoints, claim, folder, str(number))
    assert fetched(checkpoints, job, folder) == {"fit.safetensors": "11"}
    assert any_store.children(f"checkpoints/{job.id}") == ["000001-000012"]
    checkpoints.drop(job.id)
    assert not checkpoints.exists(job.id)


def test_a_worker_that_was_lost_cannot_get_in_front(
    checkpoints: Checkpoints, jobs: Jobs, job: Job, folder: Path
) -> None:
    lost = claimed(jobs, job.id)
    for number in range(3):
        save(checkpoints, lost, folder, f"lost {number}")
    jobs.reap(jobs.pulses(), max_attempts=3)
    save(checkpoints, claimed(jobs, job.id), folder, "present")
    with pytest.raises(LostClaim):
        save(checkpoints, lost, folder, "late")
    assert fetched(checkpoints, job, folder) == {"fit.safetensors": "present"}


@pytest.mark.stack
def test_a_damaged_checkpoint_is_as_good_as_none(
    jobs: Jobs, job: Job, rclone_store: ArtifactStore, folder: Path
) -> None:
    checkpoints = Checkpoints(jobs, rclone_store)
    save(checkpoints, claimed(jobs, job.id), folder, "1")
    bucket = rclone_store._bucket  # type: ignore[attr-defined]
    [name] = [name for name, _ in bucket.list("") if name.endswith(".safetensors")]
    bucket.put(name, b"other bytes")
    assert fetched(checkpoints, job, folder) is None
