"""The stack as it comes up: healthy, closed to the outside, and able to do the main job."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.integration.stack import LONG_RUNNING, Stack, docker, wait_until
from tests.integration.work import predict, train, wait


@pytest.mark.parametrize("service", ["api", "worker", "proxy", "store", "alertmanager"])
def test_our_containers_are_hardened(stack: Stack, service: str) -> None:
    (container, *_) = stack.inspect(service)
    assert stack.execute(service, "id", "-u").stdout.strip() != "0"
    assert container["HostConfig"]["ReadonlyRootfs"]
    assert container["HostConfig"]["CapDrop"] == ["ALL"]
    written = stack.execute(service, "touch", "/usr/bin/anything")
    assert "Read-only file system" in written.stderr
    for compiler in ("cc", "gcc", "c++", "clang"):
        assert stack.execute(service, "which", compiler).returncode != 0


@pytest.mark.parametrize("overlay", ["gpu", "dev", "cloud"])
def test_overlays_fit_the_file_below_them(stack: Stack, overlay: str) -> None:
    files = ("-f", "docker-compose.yml", "-f", f"docker/compose.{overlay}.yml")
    urls = {"DATABASE": "postgresql://me@h/x", "BROKER": "rediss://h:1/0", "ARTIFACT": "s3://b/p"}
    env = {f"CREDENCE_{name}_URL": url for name, url in urls.items()}
    run = docker("compose", *files, "config", "--format", "json", env=env)
    assert run.returncode == 0, run.stderr
    services = json.loads(run.stdout)["services"]
    if overlay == "cloud":
        assert not {"postgres", "redis", "store"} & set(services)
        assert "AWS_ENDPOINT_URL_S3" not in services["api"]["environment"]


def test_no_secret_is_in_the_environment_or_a_command_line(stack: Stack) -> None:
    secrets = {
        stack.key(),
        stack.execute("api", "cat", "/run/secrets/database/password").stdout,
        stack.execute("api", "cat", "/run/secrets/broker/password").stdout,
    }
    assert all(len(secret) >= 40 for secret in secrets)
    for service in LONG_RUNNING:
        told = json.dumps(stack.inspect(service)) + stack.compose("top", service)
        assert not any(secret in told for secret in secrets), service


def test_without_a_key_nobody_gets_in(stack: Stack) -> None:
    for method, path in (("POST", "/predict"), ("GET", "/jobs"), ("GET", "/models")):
        answer = httpx.request(method, stack.url + path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert httpx.get(f"{stack.url}/health/live", timeout=120).status_code == 200
    for path in ("/metrics", "/%6detrics", "/metrics/"):
        assert httpx.get(stack.url + path, timeout=120).status_code == 404, (
            "the proxy keeps it inside"
        )


def test_jobs_and_answers_are_shared(stack: Stack, http: httpx.Client, dataset: str) -> None:
    """Six jobs at once; the same question, asked of both replicas, has one answer."""
    jobs = [train(http, dataset, f"shared-{i}", epochs=30) for i in range(6)]
    ended = [wait(http, job) for job in jobs]
    assert [job["status"] for job in ended] == ["succeeded"] * 6
    started = [line for line in stack.logs("worker") if line["message"] == "job started"]
    assert {line["job_id"] for line in started} >= set(jobs)
    assert {job["version"] for job in ended} == {1}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: predict(http, "shared-0", seed=7), range(40)))
    assert len({json.dumps(answer["mean"]) for answer in answers}) == 1
    assert answers[0]["mean"] == pytest.approx([2.5, -5.0], abs=1.5)
    query = 'sum by (instance) (credence_predict_requests_total{model="shared-0"}) > 0'
    wait_until(lambda: len(stack.query(query)) == 2, 60, "both replicas to have answered")


def test_an_offline_prediction_goes_through_the_store(http: httpx.Client, dataset: str) -> None:
    wait(http, train(http, dataset, "offline"))
    body = {"model": "offline", "dataset": dataset}
    job = http.post("/predict/batch", json=body).json()["id"]
    assert wait(http, job)["status"] == "succeeded"
    result = http.get(f"/jobs/{job}/result")
    assert result.status_code == 200
    assert result.content[:4] == b"PAR1"


def test_prometheus_sees_every_replica_and_its_alertmanager(stack: Stack) -> None:
    wanted = {"api": 2, "worker": 3, "proxy": 1, "prometheus": 1, "alertmanager": 1}
    wait_until(lambda: _targets(stack) == wanted, 90, f"{wanted}, found {_targets(stack)}")
    rules = httpx.get(f"{stack.prometheus}/api/v1/rules", timeout=120).json()["data"]["groups"]
    assert sum(rule["type"] == "alerting" for group in rules for rule in group["rules"]) >= 9
    known = httpx.get(f"{stack.prometheus}/api/v1/alertmanagers", timeout=120).json()["data"]
    assert len(known["activeAlertmanagers"]) == 1


def test_a_request_can_be_followed_from_api_to_worker(
    stack: Stack, http: httpx.Client, dataset: str
) -> None:
    http.headers["X-Request-ID"] = "follow-me-1"
    try:
        job = train(http, dataset, "followed")
    finally:
        del http.headers["X-Request-ID"]
    wait(http, job)
    in_api = [line for line in stack.logs("api") if line.get("request_id") == "follow-me-1"]
    in_worker = [line for line in stack.logs("worker") if line.get("request_id") == "follow-me-1"]
    assert {line["path"] for line in in_api if "path" in line} == {"/train"}
    assert {line["job_id"] for line in in_worker} == {job}


def _targets(stack: Stack) -> dict[str, int]:
    """How many targets of each job are up now. (`up` itself remembers a target for five minutes
    if Prometheus was stopped together with it.)
    """
    answer = httpx.get(
        f"{stack.prometheus}/api/v1/targets", params={"state": "active"}, timeout=120
    )
    targets = answer.json()["data"]["activeTargets"]
    return dict(Counter(t["labels"]["job"] for t in targets if t["health"] == "up"))
