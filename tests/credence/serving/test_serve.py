import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from structlog.testing import capture_logs

from core.context import Context, open_context
from core.database.database import Database
from core.jobs.jobs import Event, Job, Jobs
from core.settings import load_settings
from credence.client import Client
from credence.serving.worker_process import WorkerProcess
from tests.credence.running import credence, serving
from tests.credence.uploading import begin_upload
from tests.waiting import wait_until

STOP_SECONDS = 10
LONG = {"training": {"epochs": 100_000, "patience": 100_000}, "network": {"hidden": [8]}}


def start_long_job(client: Client, table: Path) -> str:
    dataset = client.upload(table)["id"]
    job = client.submit_train({"model": "long", "dataset": dataset, "target": "y", **LONG})["id"]
    while not (state := client.job(job))["progress"]:
        assert state["status"] in ("queued", "running"), state["error"]
        time.sleep(0.05)
    return job


def stored_job(directory: Path, job_id: str) -> Job:
    """The job as its row says, with no service running."""
    database = Database(load_settings(data_dir=directory / "data").sqlalchemy_url)
    try:
        return Jobs(database).get(job_id)
    finally:
        database.dispose()


@contextmanager
def opened_context(directory: Path) -> Iterator[Context]:
    context = open_context(load_settings(data_dir=directory / "data"))
    try:
        yield context
    finally:
        context.close()


def attempts(events: Sequence[Event]) -> int:
    """How often the job was claimed."""
    return sum(event.data.get("status") == "running" for event in events)


def epochs_of(events: Sequence[Event], attempt: int) -> list[int]:
    """The epochs of the fit that an attempt reported."""
    number, epochs = 0, []
    for event in events:
        number += event.data.get("status") == "running"
        if event.type == "progress" and number == attempt and event.data["stage"] == "fit":
            epochs.append(int(event.data["epoch"]))
    return epochs


def test_sigterm_stops_all_and_the_running_job_goes_back_to_the_queue(
    tmp_path: Path, table: Path
) -> None:
    with serving(tmp_path) as service:
        with Client(service.url) as client:
            job = start_long_job(client, table)
        family = service.family()
        assert len(family) >= 2
        started = time.monotonic()
        service.process.terminate()
        assert service.process.wait(STOP_SECONDS) == 0
        assert time.monotonic() - started < STOP_SECONDS
        _, left = psutil.wait_procs(family, timeout=0)
        # A killed grandchild is a zombie until the machine's first process has noticed its end.
        alive = [p for p in left if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
        assert not alive, service.log_file.read_text()
    assert stored_job(tmp_path, job).status == "queued"


def test_a_dead_worker_is_replaced_and_a_killed_supervisor_takes_its_worker_along(
    tmp_path: Path,
) -> None:
    with serving(tmp_path) as service:
        first = service.worker()
        first.kill()
        psutil.wait_procs([first], timeout=5)
        while not (workers := [p for p in service.family() if "worker" in p.cmdline()]):
            time.sleep(0.1)
        assert workers[0].pid != first.pid
        assert "worker ended" in service.log_file.read_text()
        service.process.kill()
        _, alive = psutil.wait_procs(workers, timeout=STOP_SECONDS)
        assert not alive


@pytest.mark.process
def test_restarts_are_further_and_further_apart() -> None:
    broken = [sys.executable, "-c", "raise SystemExit(7)"]
    ended: list[str] = []
    with (
        capture_logs() as lines,
        WorkerProcess(dict(os.environ), broken, next_restart_seconds=0.2) as worker,
    ):
        ids = [worker.worker_id]
        while len(ids) < 5:
            worker.keep_running(ended.append)
            if worker.worker_id != ids[-1]:
                ids.append(worker.worker_id)
            time.sleep(0.01)
    delays = [line["restart_seconds"] for line in lines if line["event"] == "worker ended"]
    assert delays[:4] == [0.0, 0.2, 0.4, 0.8]  # the first restart is at once
    assert ended == ids[:-1]  # each once
    assert len(set(ids)) == len(ids)


@pytest.mark.timeout(1200)
def test_a_killed_workers_job_goes_on_at_once_to_the_same_model(
    tmp_path: Path, table: Path
) -> None:
    """With a lease of an hour: nobody waits for it, because the parent knows."""
    often = {"CREDENCE_LEASE_SECONDS": "3600", "CREDENCE_CHECKPOINT_SECONDS": "0.1"}
    long = {"training": {"epochs": 600, "patience": 600}, "network": {"hidden": [8]}}
    with serving(tmp_path, **often) as service, Client(service.url) as client:
        request = {"model": "m", "dataset": client.upload(table)["id"], "target": "y", **long}
        undisturbed = client.submit_train(request)["id"]
        wait_until(lambda: client.job(undisturbed)["status"] == "succeeded", 500)
        killed = client.submit_train(request)["id"]
        with opened_context(tmp_path) as context:
            wait_until(lambda: context.checkpoints.exists(killed))
            service.worker().kill()
            wait_until(lambda: client.job(killed)["status"] == "succeeded", 500)
            events = context.jobs.events(killed)
            first, second = (epochs_of(events, attempt) for attempt in (1, 2))
            theirs, ours = (context.registry.path(v) for v in context.registry.versions("m"))
            for file in ours.glob("*.safetensors"):
                assert file.read_bytes() == (theirs / file.name).read_bytes(), file.name
    assert attempts(events) == 2
    assert {"message": "continues from a checkpoint"} in [event.data for event in events]
    repeated = max(first) - min(second)
    assert repeated < max(first) - min(first), (first, second)


def test_a_port_in_use_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = credence("serve", "--port", port, "--data-dir", "/tmp/credence-unused")
    assert done.returncode == 1
    reason = f"cannot listen on 127.0.0.1:{port}: address already in use"
    assert done.stderr.splitlines() == [f"error: {reason}; choose another --port or --host"]


def test_a_wrong_setting_is_named_with_its_value(tmp_path: Path) -> None:
    done = credence("serve", "--data-dir", str(tmp_path), CREDENCE_MAX_SAMPLES="many")
    assert done.returncode == 2
    assert "CREDENCE_MAX_SAMPLES=many" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_data_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = credence("serve", "--data-dir", str(tmp_path / "file" / "data"))
    assert done.returncode == 2
    assert f"CREDENCE_DATA_DIR={tmp_path / 'file' / 'data'}" in done.stderr
    assert "Traceback" not in done.stderr


def test_other_machines_are_not_let_in_without_a_key(tmp_path: Path) -> None:
    done = credence("serve", "--host", "0.0.0.0", "--data-dir", str(tmp_path))
    assert done.returncode == 2
    assert "CREDENCE_AUTH=off" in done.stderr


def test_a_device_that_is_not_there_is_named(tmp_path: Path) -> None:
    settings = {"CREDENCE_DEVICE": "cuda:99"}
    done = credence("serve", "--port", "0", "--data-dir", str(tmp_path), **settings)
    assert done.returncode == 2
    assert "CREDENCE_DEVICE=cuda:99: this machine has cpu" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_service_whose_worker_cannot_start_ends(tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        settings = {"CREDENCE_WORKER_METRICS_PORT": str(taken.getsockname()[1])}
        done = credence("serve", "--port", "0", "--data-dir", str(tmp_path), **settings)
    assert done.returncode == 1
    assert "CREDENCE_WORKER_METRICS_PORT" in done.stderr
    assert "the worker ended with exit code 2 before it was ready" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_api_alone_answers_what_is_in_flight_before_ctrl_c_ends_it(tmp_path: Path) -> None:
    body = b"a,b\n" + b"1,2\n" * 50
    with serving(tmp_path, "api") as service:
        assert len(service.family()) == 1
        request = begin_upload(service.url, "slow", len(body))
        request.send(body[:100])
        service.process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        request.send(body[100:])
        assert request.getresponse().status == 201
        assert service.process.wait(STOP_SECONDS) == 0
        request.close()
