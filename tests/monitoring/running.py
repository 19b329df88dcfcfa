"""Real Prometheus and Alertmanager, with the project's own rules and configuration."""

import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.waiting import PATIENCE, free_port, wait_until

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "docker" / "prometheus"
ALERTMANAGER = ROOT / "docker" / "alertmanager"
RULES = [PROMETHEUS / "rules" / name for name in ("recording.yml", "alerts.yml")]


def program(*names: str) -> str:
    """The first of the programs that is on the PATH; the test is skipped if none is."""
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no {' or '.join(names)}: apt-get install prometheus prometheus-alertmanager")
    return found


@contextmanager
def process(command: Sequence[str], url: str, log: Path, **options: Any) -> Iterator[None]:
    """A program that is ready when `url` answers 200."""
    with log.open("w") as output:
        running = subprocess.Popen(command, stdout=output, stderr=output, **options)
    try:
        wait_until(lambda: running.poll() is not None or _answers(url))
        assert running.poll() is None, log.read_text()
        yield
    finally:
        running.terminate()
        running.wait(PATIENCE)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=120).status_code == 200
    except httpx.TransportError:
        return False


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus; `started` is the time of its first scrape, in seconds since 1970."""

    url: str
    started: float

    def get(self, path: str, **params: Any) -> Any:
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=params, timeout=PATIENCE).json()
        assert answer["status"] == "success", answer
        return answer["data"]

    def instant(self, expr: str) -> list[Any]:
        """Series as a table or a number shows them: each with its one value."""
        return [[s["value"]] for s in self.get("query", query=expr)["result"]]

    def over_time(self, expr: str) -> list[Any]:
        """Series as a graph shows them: each with its values since the first scrape."""
        span = {"start": self.started, "end": time.time(), "step": 1}
        return [s["values"] for s in self.get("query_range", query=expr, **span)["result"]]


@contextmanager
def prometheus(directory: Path, targets: dict[str, str], alertmanager: str) -> Iterator[Prometheus]:
    """The project's configuration with these addresses by job, and every interval a second."""
    address = f"127.0.0.1:{free_port()}"
    config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(path) for path in RULES]
    config["alerting"]["alertmanagers"] = [{"static_configs": [{"targets": [alertmanager]}]}]
    known = targets | {"prometheus": address, "alertmanager": alertmanager}
    config["scrape_configs"] = [
        {"job_name": job, "static_configs": [{"targets": [known[job]]}]}
        for scrape in config["scrape_configs"]
        if (job := scrape["job_name"]) in known
    ]
    path = directory / "prometheus.yml"
    path.write_text(yaml.safe_dump(config))
    storage = f"--storage.tsdb.path={directory / 'prometheus'}"
    options = [f"--config.file={path}", f"--web.listen-address={address}", storage]
    command, ready = [program("prometheus"), *options], f"http://{address}/-/ready"
    with process(command, ready, directory / "prometheus.log"):
        yield Prometheus(f"http://{address}", time.time())


@contextmanager
def alertmanager(directory: Path, webhook: str = "") -> Iterator[str]:
    """The address of an Alertmanager started as in the stack, with waits of a fifth of a second.

    `webhook` is the address that the secret file holds.
    """
    config = yaml.safe_load((ALERTMANAGER / "alertmanager.yml").read_text())
    for route in (config["route"], *config["route"]["routes"]):
        route |= {"group_wait": "200ms", "group_interval": "200ms"}
    given, secret = directory / "given.yml", directory / "webhook_url"
    given.write_text(yaml.safe_dump(config))
    secret.write_text(webhook + "\n" if webhook else "")
    address = f"127.0.0.1:{free_port()}"
    command = [
        str(ALERTMANAGER / "start.sh"),
        program("prometheus-alertmanager", "alertmanager"),
        f"--storage.path={directory / 'alertmanager'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "ALERT_WEBHOOK_URL_FILE": str(secret),
        "ALERTMANAGER_CONFIG": str(given),
        "TMPDIR": str(directory),
    }
    log = directory / "alertmanager.log"
    with process(command, f"http://{address}/-/ready", log, env=environment):
        yield address
