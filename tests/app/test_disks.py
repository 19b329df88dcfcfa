"""A disk that is full, takes nothing, or takes long: refusals that say so, nothing half done."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.context import Context, open_context
from core.jobs.jobs import JobStatus
from core.settings import load_settings
from tests.app.running import Service, answered, serving
from tests.waiting import PATIENCE, free_port, wait_until
from tests.worker.conftest import add_line, train_job
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

pytestmark = pytest.mark.stack

ROW = [1.0, "oak", True, None]
TRAIN = {
    "model": "line",
    "target": "y",
    "data": {"columns": {"x": [1, 2, 3] * 9, "y": [1, 2, 4] * 9}},
}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 24 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(command, check=False).returncode:
        pytest.skip("only root may mount a file system of its own")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def on_small_disk(trained: Path, small_disk: Path) -> Iterator[Service]:
    """A service whose data directory is there."""
    shutil.copytree(trained, small_disk / "data")
    with serving(small_disk / "data") as running:
        assert predict(running).status_code == 200
        yield running


def fill(disk: Path) -> Path:
    """A file that leaves no byte."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (2**16, 2**12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return filler


def predict(service: Service) -> httpx.Response:
    return service.post("/predict", {"model": "price", "inputs": [ROW]})


def upload(service: Service, rows: int = 50_000) -> httpx.Response:
    table = "x,y\n" + "".join(f"{i},{2 * i}\n" for i in range(rows))
    headers = {"Content-Type": "text/csv"}
    return service.http.post("/datasets?name=big", content=table.encode(), headers=headers)


def tree(folder: Path) -> set[str]:
    """What is kept, but for the database's own files."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    return {name for name in found if not name.startswith("credence.db")}


def assert_refused(answer: httpx.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.parametrize("room_kb", [0, 64, 1100])
def test_a_full_disk_keeps_nothing(on_small_disk: Service, small_disk: Path, room_kb: int) -> None:
    """The upload has 650 kB, and its table 800: whichever step meets the end of the disk."""
    before = tree(small_disk)
    filler = fill(small_disk)
    os.truncate(filler, filler.stat().st_size - room_kb * 1024)
    assert_refused(upload(on_small_disk))
    assert predict(on_small_disk).status_code == 200
    filler.unlink()
    assert tree(small_disk) == before
    accepted = answered(upload(on_small_disk), 201)
    rows = on_small_disk.http.get(f"/datasets/{accepted.json()['id']}/rows?limit=2").json()
    assert rows["data"][1] == {"x": 1.0, "y": 2.0}


def test_a_full_database_keeps_what_it_accepted(on_small_disk: Service, small_disk: Path) -> None:
    first = on_small_disk.post("/train", TRAIN).json()
    filler = fill(small_disk)
    accepted = [first["id"]]
    for _ in range(300):  # until what SQLite has in its log is used up
        answer = on_small_disk.post(
            "/train", TRAIN | {"dataset": first["request"]["dataset"], "data": None}
        )
        if answer.status_code != 202:
            break
        accepted.append(answer.json()["id"])
    assert_refused(answer)
    assert "full" in answer.json()["detail"]
    assert predict(on_small_disk).status_code == 200
    assert on_small_disk.http.get("/jobs").status_code == 200
    filler.unlink()
    again = answered(on_small_disk.post("/train", TRAIN), 202)
    for job in (*accepted, again.json()["id"]):
        assert on_small_disk.http.get(f"/jobs/{job}").json()["status"] == "queued"


@pytest.fixture
def working(small_disk: Path, tmp_path: Path) -> Iterator[Context]:
    """A worker's context whose database is on another disk."""
    settings = load_settings(
        data_dir=small_disk / "data",
        database_url=f"sqlite:///{tmp_path}/credence.db",
        worker_metrics_port=0,
        checkpoint_seconds=0.01,
    )
    settings.prepare_data_dir()
    context = open_context(settings)
    yield context
    context.close()


def runner_of(context: Context) -> JobRunner:
    return JobRunner(context, "w", WorkerMetrics(), lambda: False)


def test_a_job_waits_for_room_and_ends_when_there_is_some(
    working: Context, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.runner.PAUSE_SECONDS", 0.1)
    job, runner = train_job(working, add_line(working)), runner_of(working)
    before, filler = tree(small_disk), fill(small_disk)
    runner.wake()
    waiting = working.jobs.get(job.id)
    assert (waiting.status, waiting.error) == (JobStatus.QUEUED, None)
    filler.unlink()
    assert {name for name in tree(small_disk) - before if "checkpoint" not in name} == set()
    runner.wake()
    assert working.jobs.get(job.id).status is JobStatus.SUCCEEDED
    assert working.registry.get("line").version == 1


def test_a_checkpoint_that_cannot_be_written_costs_no_run(
    working: Context, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full from the first mini-batch until the model is to be written."""
    from worker import training

    job, fillers = train_job(working, add_line(working)), []
    with_baselines = training.with_baselines

    def full_until_trained(*arguments: Any) -> Any:
        for filler in fillers:
            filler.unlink()
        return with_baselines(*arguments)

    class Reporter(training._Reporter):
        def __call__(self, progress: Any) -> None:
            if not fillers:
                fillers.append(fill(small_disk))
            super().__call__(progress)

    monkeypatch.setattr(training, "with_baselines", full_until_trained)
    monkeypatch.setattr(training, "_Reporter", Reporter)
    runner_of(working).wake()
    assert fillers
    ended = working.jobs.get(job.id)
    assert (ended.status, ended.attempt) == (JobStatus.SUCCEEDED, 1), ended.error


def test_output_and_log_that_cannot_be_written_end_nothing(trained: Path, tmp_path: Path) -> None:
    """Both may go to a disk that is full."""
    shutil.copytree(trained, tmp_path / "data")
    port = free_port()
    command = [sys.executable, "-m", "credence", "api", "--port", str(port)]
    command += ["--data-dir", str(tmp_path / "data")]
    with (
        Path("/dev/full").open("w") as full,
        subprocess.Popen(command, stdout=full, stderr=full) as running,
    ):
        url = f"http://127.0.0.1:{port}/predict"
        body = {"model": "price", "inputs": [ROW]}
        wait_until(lambda: _status(url, body) == 200 or running.poll() is not None)
        for _ in range(50):
            assert _status(url, body) == 200
        running.send_signal(signal.SIGTERM)
        assert running.wait(PATIENCE) != 1, "it ended by itself"


def _status(url: str, body: dict[str, Any]) -> int:
    try:
        return httpx.post(url, json=body, timeout=120).status_code
    except httpx.TransportError:
        return 0
