import http.client
import os
import signal
import socket
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest

from core.database.database import Database
from core.jobs.jobs import Job, Jobs
from core.settings import load_settings
from credence.client import Client
from credence.serving.worker_process import WorkerProcess
from tests.credence.running import credence, serving

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
        _, alive = psutil.wait_procs(family, timeout=0)
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
    worker = WorkerProcess(dict(os.environ), broken, first_restart_seconds=0.2)
    worker.start()
    starts = {worker.pid: time.monotonic()}
    while len(starts) < 4:
        worker.keep_running()
        starts.setdefault(worker.pid, time.monotonic())
        time.sleep(0.01)
    worker.join(1)
    first, second, third = np.diff(list(starts.values()))
    assert 0.2 < first < second < third


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
        address = httpx.URL(service.url)
        request = http.client.HTTPConnection(address.host, address.port, timeout=STOP_SECONDS)
        request.putrequest("POST", "/datasets?name=slow")
        request.putheader("Content-Type", "text/csv")
        request.putheader("Content-Length", str(len(body)))
        request.endheaders(body[:100])
        time.sleep(0.5)
        service.process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        request.send(body[100:])
        assert request.getresponse().status == 201
        assert service.process.wait(STOP_SECONDS) == 0
        request.close()
