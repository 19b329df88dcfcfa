"""Row 13: what an attack leaves behind, and what it does not."""

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.running import Service, publish, regression_columns, serving
from tests.attacks.conftest import Guarded
from tests.attacks.sending import ask
from tests.waiting import PATIENCE, wait_until

WATCHED = "credence_http_requests_total"


def lines(guarded: Guarded, request_id: str) -> list[dict[str, Any]]:
    """What the log has of a request, once it is there."""

    def found() -> list[dict[str, Any]]:
        text = guarded.service.log_file.read_text().splitlines()
        parsed = [json.loads(line) for line in text if line.startswith("{")]
        return [line for line in parsed if line.get("request_id") == request_id]

    wait_until(found)
    return found()


def test_each_line_names_address_key_and_owner(guarded: Guarded) -> None:
    for path in ("/models", "/predict"):
        method, name = ("POST", "predicts") if path == "/predict" else ("GET", "reads")
        headers = {"X-Request-ID": name, "Content-Type": "application/json"}
        with guarded.client(guarded.eve) as eve:
            eve.request(method, path, headers=headers, json={"model": "none", "inputs": [[1]]})
        (line,) = lines(guarded, name)
        assert line["client"] == "127.0.0.1"
        assert line["owner"] == "eve"
        assert line["key"].startswith("key_")
        assert guarded.eve not in json.dumps(line)


def test_the_address_is_what_a_trusted_proxy_says(guarded: Guarded) -> None:
    for number, (forwarded, client) in enumerate(
        (
            ("198.51.100.1, 203.0.113.9", "203.0.113.9"),  # the client said, and the proxy added
            ("203.0.113.9, 127.0.0.1", "203.0.113.9"),
            ("2001:db8::9", "2001:db8::9"),
            ("a line of mine", "unknown"),
        )
    ):
        name = f"from-{number}"
        headers = ["Host: 127.0.0.1", f"X-Forwarded-For: {forwarded}", f"X-Request-ID: {name}"]
        assert ask(guarded.url, "GET", "/models", headers).status == 401
        assert lines(guarded, name)[0]["client"] == client


def test_every_answer_is_counted_by_route_and_status(guarded: Guarded) -> None:
    with guarded.client("") as nobody, guarded.client(guarded.eve) as eve:
        nobody.get("/models/one")
        nobody.get("/models/two")
        eve.get("/jobs/some")
        eve.get("/models/none")
        eve.post("/predict", content=b"{")
        nobody.post("/v2/models/m/infer", json={})
        eve.request("PURGE", "/no/such/path/at/all")
        ask(guarded.url, "GET", "/datasets", ["Host: evil.example"])
        text = nobody.get("/metrics").text
    counted = [line for line in text.splitlines() if line.startswith(WATCHED)]
    for labels, least in {
        'method="GET",route="/models/{name}",status="401"': 2,
        'method="GET",route="/jobs/{job_id}",status="403"': 1,
        'method="GET",route="/models/{name}",status="404"': 1,
        'method="POST",route="/predict",status="400"': 1,
        'method="POST",route="/v2/models/{model}/infer",status="401"': 1,
        'method="other",route="unmatched",status="403"': 1,
        'method="GET",route="/datasets",status="421"': 1,
    }.items():
        (line,) = [line for line in counted if f"{{{labels}}}" in line]
        assert float(line.split()[-1]) >= least
    assert "such/path" not in "".join(counted)


@pytest.fixture
def published(tmp_path: Path) -> Iterator[Service]:
    """A service with a model `price`."""
    with serving(tmp_path / "data", max_samples=5000) as service:
        publish(service.context, "price", regression_columns(), target="price")
        yield service
    shutil.rmtree(tmp_path / "data", ignore_errors=True)


def test_what_leaves_is_audited_and_the_deleted_forgotten(
    published: Service,
) -> None:
    body = {"model": "price", "inputs": [[0.5, "oak", True, None]]}
    assert published.post("/predict", body).status_code == 200
    assert published.http.get("/models/price/versions/1/archive").status_code == 200
    actions = {line["action"]: line for line in published.http.get("/audit").json()["data"]}
    assert actions["version.export"]["object"] == "price/1"
    assert actions["settings.change"]["details"]["max_samples"] == "5000"
    assert 'model="price"' in published.http.get("/metrics").text
    assert published.http.delete("/models/price").status_code == 204
    assert 'model="price"' not in published.http.get("/metrics").text


def test_trailers_are_no_headers(guarded: Guarded) -> None:
    """Whoever has read the head has checked it: what comes after the body changes nothing."""
    key, host = f"Authorization: Bearer {guarded.eve}", "Host: 127.0.0.1"
    assert chunked(guarded.url, [host], [key]) == 401
    assert chunked(guarded.url, [host, key], ["Host: evil.example"]) == 200
    forwarded = ["X-Forwarded-For: 203.0.113.9", "X-Request-ID: trailing"]
    assert chunked(guarded.url, [host, key, *forwarded], ["X-Forwarded-For: 198.51.100.1"]) == 200
    (line,) = lines(guarded, "trailing")
    assert line["client"] == "203.0.113.9"


def chunked(url: str, head: list[str], trailers: list[str]) -> int:
    """The status of a request with a chunked body, all of which comes in one packet."""
    place = httpx.URL(url)
    said = ["GET /models HTTP/1.1", *head, "Connection: close", "Transfer-Encoding: chunked"]
    text = "\r\n".join([*said, "", "2", "{}", "0", *trailers, "", ""])
    with socket.create_connection((place.host, place.port or 80), timeout=PATIENCE) as connection:
        connection.sendall(text.encode())
        answer = connection.makefile("rb").readline()
    return int(answer.split()[1])


def test_the_proxy_repeats_only_what_nobody_received() -> None:
    proxy = Path(__file__).parents[2] / "docker" / "proxy" / "haproxy.cfg"
    rules = [line.split() for line in proxy.read_text().splitlines()]
    assert [rule[1:] for rule in rules if rule[:1] == ["retry-on"]] == [["conn-failure"]]
