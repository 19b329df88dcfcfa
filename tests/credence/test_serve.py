import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest

from credence.client import Client
from credence.serving.worker_process import WorkerProcess
from tests.credence.conftest import TINY
from tests.credence.running import CREDENCE, credence, environment, serving

STOP_SECONDS = 10
LONG = {"training": {"epochs": 100_000, "patience": 100_000}, "network": {"hidden": [8]}}


def gone(processes: list[psutil.Process], seconds: float = 0.0) -> bool:
    """Whether none of the processes is left after so many seconds."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return not alive


def start_long_job(client: Client, table: Path) -> str:
    dataset = client.upload(table)["id"]
    job = client.train({"model": "long", "dataset": dataset, "target": "y", **LONG})["id"]
    while not client.job(job)["progress"]:
        time.sleep(0.05)
    return job


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_all_and_the_running_job_goes_back_to_the_queue(
    tmp_path: Path, table: Path, number: signal.Signals
) -> None:
    with serving(tmp_path) as service:
        with Client(service.url) as client:
            job = start_long_job(client, table)
        family = service.family()
        assert len(family) >= 2
        started = time.monotonic()
        service.process.send_signal(number)
        assert service.process.wait(STOP_SECONDS) == 0
        assert time.monotonic() - started < STOP_SECONDS
        assert gone(family), service.log_file.read_text()
    with serving(tmp_path) as service, Client(service.url) as client:
        assert client.job(job)["status"] in ("queued", "running")
        client.cancel(job)
        assert client.wait(job, poll_seconds=0.1)["status"] == "cancelled"


def test_killing_the_supervisor_takes_the_worker_with_it(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        worker = service.worker()
        service.process.kill()
        assert gone([worker], seconds=STOP_SECONDS)


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        first = service.worker()
        os.kill(first.pid, signal.SIGKILL)
        psutil.wait_procs([first], timeout=5)
        while not (workers := [p for p in service.family() if "worker" in p.cmdline()]):
            time.sleep(0.1)
        assert workers[0].pid != first.pid
        assert "worker ended" in service.log_file.read_text()


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
    assert done.stderr.splitlines() == [
        f"error: cannot listen on 127.0.0.1:{port}: address already in use; "
        "choose another --port or --host"
    ]


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


def test_a_service_whose_worker_cannot_start_ends(tmp_path: Path) -> None:
    settings = {"CREDENCE_DEVICE": "cuda:99"}
    done = credence("serve", "--port", "0", "--data-dir", str(tmp_path), **settings)
    assert done.returncode == 1
    assert "cuda:99" in done.stderr


def test_a_request_in_flight_is_answered_before_the_service_stops(tmp_path: Path) -> None:
    body = b"a,b\n" + b"1,2\n" * 50
    with serving(tmp_path, "api") as service:
        address = httpx.URL(service.url)
        request = http.client.HTTPConnection(address.host, address.port, timeout=STOP_SECONDS)
        request.putrequest("POST", "/datasets?name=slow")
        request.putheader("Content-Type", "text/csv")
        request.putheader("Content-Length", str(len(body)))
        request.endheaders(body[:100])
        time.sleep(0.5)
        service.process.terminate()
        time.sleep(0.5)
        request.send(body[100:])
        assert request.getresponse().status == 201
        assert service.process.wait(STOP_SECONDS) == 0


def test_api_and_worker_run_alone(tmp_path: Path, table: Path) -> None:
    with serving(tmp_path, "api") as service, Client(service.url) as client:
        assert len(service.family()) == 1
        dataset = client.upload(table)["id"]
        job = client.train({"model": "alone", "dataset": dataset, "target": "y", **TINY})["id"]
        assert client.job(job)["status"] == "queued"
        command = [*CREDENCE, "worker", "--data-dir", str(tmp_path / "data")]
        with subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL) as worker:
            assert client.wait(job, poll_seconds=0.1)["status"] == "succeeded"
            worker.terminate()
            assert worker.wait(STOP_SECONDS) == 0
