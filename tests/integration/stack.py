"""A compose stack of the tests' own, driven as an operator would: by `docker compose` and HTTP."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.waiting import PATIENCE, slowness

ROOT = Path(__file__).parents[2]
PROJECT = "credence-test"
VARIABLES = {
    "API_PORT": "18000",
    "GRAFANA_PORT": "13000",
    "PROMETHEUS_PORT": "19090",
    "API_REPLICAS": "2",
    "WORKER_REPLICAS": "3",
    "IMAGE_TAG": "test",
    "SETTINGS_FILE": str(Path(__file__).with_name("settings.env")),
}
REPLICAS = {"api": 2, "worker": 3}  # and one of all else
LONG_RUNNING = ("proxy", "api", "worker", "postgres", "redis", "store")
MONITORING = ("prometheus", "alertmanager", "grafana")


def engine_missing() -> str:
    """Why no stack can be started here; empty when one can."""
    for command in (["docker", "info"], ["docker", "compose", "version"]):
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{' '.join(command)}: {error}"
        if run.returncode:
            return f"{' '.join(command)}: {run.stderr.strip()[-200:]}"
    return ""


@dataclass(frozen=True)
class Stack:
    """What runs under one project name; every command is one that docs/operations.md shows."""

    url: str = f"http://127.0.0.1:{VARIABLES['API_PORT']}"
    prometheus: str = f"http://127.0.0.1:{VARIABLES['PROMETHEUS_PORT']}"
    grafana: str = f"http://127.0.0.1:{VARIABLES['GRAFANA_PORT']}"

    def compose(self, *arguments: str, timeout: float = 1800) -> str:
        """The output of `docker compose …`; an exit status other than 0 fails the test."""
        run = docker("compose", "-p", PROJECT, *arguments, env=VARIABLES, timeout=timeout)
        assert run.returncode == 0, f"{arguments}: {run.stdout[-2000:]}{run.stderr[-4000:]}"
        return run.stdout

    def start(self) -> float:
        """Two replicas, three workers; the seconds until all are healthy."""
        started = time.monotonic()
        self.compose("up", "--detach", "--wait", "--wait-timeout", f"{PATIENCE:.0f}")
        return time.monotonic() - started

    def make_whole(self) -> None:
        """Start what a test has left stopped, paused or ill."""
        paused = self.compose("ps", "--quiet", "--status", "paused").split()
        if paused:
            docker("unpause", *paused)
        if self._is_whole():
            return
        self._await_health()
        self.start()

    def _is_whole(self) -> bool:
        return all(self.is_healthy(service) for service in (*LONG_RUNNING, *MONITORING))

    def _await_health(self) -> None:
        """Wait until no container is unhealthy: `up --wait` gives up at the first that is.

        One whose database hung, or that was stopped for a while, is well at its next check.
        """
        own = f"label=com.docker.compose.project={PROJECT}"
        ill = ("ps", "--quiet", "--filter", "health=unhealthy", "--filter", own)
        wait_until(lambda: not docker(*ill).stdout.strip(), 120, "every container to be well")

    def is_healthy(self, service: str) -> bool:
        """Whether all its replicas are there, and well."""
        containers = self.containers(service)
        return len(containers) == REPLICAS.get(service, 1) and all(
            container["State"].get("Health", {}).get("Status") == "healthy"
            for container in json.loads(docker("inspect", *containers).stdout)
        )

    def release(self, *options: str) -> None:
        """What `make release` does."""
        self.shell(f"deploy/release.sh {' '.join(options)}")

    def shell(self, commands: str, folder: Path = ROOT) -> None:
        """Lines of docs/operations.md, run in a folder; the first that fails fails the test."""
        own = {"COMPOSE_PROJECT_NAME": PROJECT, "COMPOSE_FILE": str(ROOT / "docker-compose.yml")}
        run = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=folder,
            env=os.environ | VARIABLES | own,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        assert run.returncode == 0, f"{commands}: {run.stdout[-2000:]}{run.stderr[-4000:]}"

    def containers(self, service: str) -> list[str]:
        return self.compose("ps", "--quiet", service).split()

    def inspect(self, service: str) -> list[dict[str, Any]]:
        found = docker("inspect", *self.containers(service))
        return list(json.loads(found.stdout))

    def inspect_all(self, service: str) -> list[dict[str, Any]]:
        """Those that have stopped as well."""
        found = docker("inspect", *self.compose("ps", "--all", "--quiet", service).split())
        return list(json.loads(found.stdout))

    def execute(self, service: str, *command: str) -> subprocess.CompletedProcess[str]:
        return docker("exec", self.containers(service)[0], *command)

    def logs(self, service: str) -> list[dict[str, Any]]:
        """The lines of JSON that a service has written."""
        text = self.compose("logs", "--no-color", "--no-log-prefix", service)
        starts = ((line, line.find("{")) for line in text.splitlines())  # compose may erase before
        return [json.loads(line[start:]) for line, start in starts if start >= 0]

    def key(self) -> str:
        return self.execute("api", "cat", "/run/secrets/admin/key").stdout.strip()

    def http(self) -> httpx.Client:
        """A client with the key of the secret file."""
        headers = {"Authorization": f"Bearer {self.key()}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE)

    def kill(self, service: str) -> None:
        """SIGKILL to one container's first process, as the kernel does when memory is short."""
        pid = int(self.inspect(service)[0]["State"]["Pid"])
        os.kill(pid, signal.SIGKILL)

    def query(self, promql: str) -> list[dict[str, Any]]:
        """The result of an instant query."""
        answer = httpx.get(f"{self.prometheus}/api/v1/query", params={"query": promql}, timeout=30)
        answer.raise_for_status()
        return list(answer.json()["data"]["result"])


def docker(
    *arguments: str, env: dict[str, str] | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *arguments],
        cwd=ROOT,
        env=os.environ | (env or {}),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def wait_until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """The first true value of `condition`; on a busy machine it has as many times longer."""
    deadline = time.monotonic() + slowness() * seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.5)
    return value


def pages(http: httpx.Client, path: str, **params: Any) -> Iterator[dict[str, Any]]:
    """All elements of a list route."""
    cursor = None
    while True:
        answer = http.get(path, params=params | ({"cursor": cursor} if cursor else {}))
        answer.raise_for_status()
        yield from answer.json()["data"]
        cursor = answer.json()["next_cursor"]
        if cursor is None:
            return
