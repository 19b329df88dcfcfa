"""`credence serve` as a process: it starts, stops, and bears a worker's death."""

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest
from structlog.testing import capture_logs

from core.context import Context, open_context
from core.settings import load_settings
from credence.client import Client
from credence.serving.worker_process import WorkerProcess
from tests.credence.running import Service, begin_upload, credence, serving
from tests.waiting import PATIENCE, slowness, wait_until

STOP_SECONDS = 10
LONG = {"training": {"epochs": 100_000, "patience": 100_000}, "network": {"hidden": [8]}}


def start_long_job(client: Client, table: Path) -> str:
    """A training that is under way, and ends with no test."""
    dataset = client.upload(table)["id"]
    job = client.submit_train({"model": "long", "dataset": dataset, "target": "y", **LONG})["id"]
    wait_until(lambda: client.job(job)["progress"] or client.job(job)["error"])
    assert client.job(job)["status"] == "running"
    return job


@contextmanager
def opened_context(directory: Path) -> Iterator[Context]:
    context = open_context(load_settings(data_dir=directory / "data"))
    try:
        yield context
    finally:
        context.close()


def workers(service: Service) -> list[int]:
    """The ids of the processes that are workers."""
    found = []
    for process in service.family():
        with suppress(psutil.NoSuchProcess):  # it ends just now
            if "worker" in process.cmdline():
                found.append(process.pid)
    return found


def alive(ids: list[int]) -> list[int]:
    """A killed grandchild is a zombie until the machine's first process has noticed its end."""
    found = []
    for pid in ids:
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
    return found


def test_sigterm_stops_all_and_the_job_goes_back(tmp_path: Path, table: Path) -> None:
    with serving(tmp_path) as service:
        with Client(service.url) as client:
            job = start_long_job(client, table)
        family = [process.pid for process in service.family()]
        assert len(family) >= 2
        service.process.terminate()
        assert service.process.wait(PATIENCE) == 0
        assert not alive(family), service.log_file.read_text()
    with opened_context(tmp_path) as context:
        assert context.jobs.get(job).status == "queued"


@pytest.mark.timing
def test_a_stop_during_a_training_takes_less_than_ten_seconds(tmp_path: Path, table: Path) -> None:
    with serving(tmp_path) as service:
        with Client(service.url) as client:
            start_long_job(client, table)
        service.process.terminate()
        assert service.process.wait(slowness() * STOP_SECONDS) == 0


def test_a_dead_worker_is_replaced_and_follows_its_supervisor(
    tmp_path: Path,
) -> None:
    with serving(tmp_path) as service:
        first = service.worker()
        first.kill()
        wait_until(lambda: set(workers(service)) - {first.pid})
        others = workers(service)
        service.process.kill()
        wait_until(lambda: not alive(others))


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
def test_a_killed_workers_job_goes_on_to_the_same_model(tmp_path: Path, table: Path) -> None:
    """With a lease of an hour: nobody waits for it, because the parent knows."""
    often = {"CREDENCE_LEASE_SECONDS": "3600", "CREDENCE_CHECKPOINT_SECONDS": "0.1"}
    long = {"training": {"epochs": 1500, "patience": 1500}, "network": {"hidden": [8]}}
    with serving(tmp_path, **often) as service, Client(service.url) as client:
        request = {"model": "m", "dataset": client.upload(table)["id"], "target": "y", **long}
        undisturbed = client.submit_train(request)["id"]
        wait_until(lambda: client.job(undisturbed)["status"] == "succeeded")
        killed = client.submit_train(request)["id"]
        with opened_context(tmp_path) as context:
            wait_until(lambda: context.checkpoints.exists(killed))
            service.worker().kill()
            wait_until(lambda: client.job(killed)["status"] == "succeeded")
            events = [event.data for event in context.jobs.events(killed)]
            theirs, ours = (context.registry.path(v) for v in context.registry.versions("m"))
            for file in ours.glob("*.safetensors"):
                assert file.read_bytes() == (theirs / file.name).read_bytes(), file.name
    assert sum(event.get("status") == "running" for event in events) == 2  # claimed so often
    assert {"message": "continues from a checkpoint"} in events


def refused(*arguments: str, **settings: str) -> tuple[int, str]:
    """The exit code of a service that does not start, and what it says in place of a trace."""
    done = credence(*arguments, **settings)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, said = refused("serve", "--port", port, "--data-dir", str(tmp_path))
    assert code == 1
    assert f"127.0.0.1:{port}" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("MAX_SAMPLES", "many"), ("ADMIN_KEY_FILE", "{file}"), ("DEVICE", "cuda:99")],
)
def test_a_wrong_setting_is_named_with_its_value(tmp_path: Path, name: str, value: str) -> None:
    (tmp_path / "file").touch()
    wrong = value.format(file=tmp_path / "file")
    settings = {"CREDENCE_DATA_DIR": str(tmp_path), f"CREDENCE_{name}": wrong}
    code, said = refused("serve", "--port", "0", **settings)
    assert code == 2
    assert f"CREDENCE_{name}={wrong}" in said


def test_other_machines_are_not_let_in_without_a_key(tmp_path: Path) -> None:
    code, said = refused("serve", "--host", "0.0.0.0", "--data-dir", str(tmp_path))
    assert code == 2
    assert "credence keys create" in said
    assert "CREDENCE_AUTH=off" in said


def test_a_service_whose_worker_cannot_start_ends(tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        settings = {"CREDENCE_WORKER_METRICS_PORT": str(taken.getsockname()[1])}
        code, said = refused("serve", "--port", "0", "--data-dir", str(tmp_path), **settings)
    assert code == 1
    assert "CREDENCE_WORKER_METRICS_PORT" in said
    assert "exit code 2" in said


def test_the_api_alone_answers_what_is_in_flight_before_ctrl_c_ends_it(tmp_path: Path) -> None:
    body = b"a,b\n" + b"1,2\n" * 50
    with serving(tmp_path, "api") as service:
        assert len(service.family()) == 1
        request = begin_upload(service.url, "slow", len(body))
        request.send(body[:100])
        service.process.send_signal(signal.SIGINT)
        wait_until(lambda: not accepts(service.url))
        request.send(body[100:])
        assert request.getresponse().status == 201
        assert service.process.wait(PATIENCE) == 0
        request.close()


def accepts(url: str) -> bool:
    """Whether somebody listens there."""
    address = httpx.URL(url)
    try:
        socket.create_connection((address.host, address.port or 0)).close()
    except ConnectionError:
        return False
    return True
