"""Archives of models that unpack to much JSON: refused before it is parsed."""

import json
from collections.abc import Iterator

import httpx
import psutil
import pytest

from core.registry.documents import BOUNDS
from tests.attacks import artifacts
from tests.attacks.asking import asking_throughout
from tests.credence.running import Service, serving
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.server]

TAR = {"Content-Type": "application/x-tar"}
MOST_SECONDS = 1.0  # of the processor: a card of 63 MB of empty lists took 13
MOST_BYTES = 200 * 2**20  # it took 1.5 GB; a service that imports nothing but torch moves by 50 MB


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("archives")) as running:
        yield running


@pytest.fixture
def http(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=280) as client:
        yield client


def send(http: httpx.Client, members: dict[str, bytes], name: str) -> httpx.Response:
    body = artifacts.packed(members)
    return http.post(f"/models/{name}/versions", content=body, headers=TAR)


def held(service: Service) -> int:
    return int(psutil.Process(service.process.pid).memory_info().rss)


def lists(number: int) -> bytes:
    return b"[" + b"[]," * (number - 1) + b"[]]"


def test_a_card_of_63_megabytes(service: Service, http: httpx.Client) -> None:
    bomb = artifacts.with_card_member(lists(21_000_000))
    before = held(service)
    with asking_throughout(service) as seconds:
        answer = send(http, bomb, "bomb")
    assert answer.status_code == 422
    assert "card.json" in answer.json()["detail"]
    assert http.get("/models/bomb").status_code == 404
    assert max(seconds) < MOST_SECONDS
    assert held(service) - before < MOST_BYTES


@pytest.mark.parametrize("field", ["notes", "metrics"])
def test_a_description_that_the_database_would_keep(http: httpx.Client, field: str) -> None:
    """64 kB became a row of 54 MB, which each list of models read."""
    files = artifacts.files()
    model, texts = json.loads(files["model.json"]), ["n" * 60_000] * 200
    if field == "notes":
        model["notes"] = texts
    else:
        model["variants"][0]["metrics"]["more"] = texts
    answer = send(http, files | {"model.json": json.dumps(model).encode()}, "bomb")
    assert answer.status_code == 422
    place = "notes" if field == "notes" else "variants"
    assert answer.json()["errors"][0]["path"] == f"/model.json/{place}"


def test_the_largest_card_that_is_read(service: Service, http: httpx.Client) -> None:
    """Import, card and prediction: others wait for none, and the card is not kept."""
    values = BOUNDS["card.json"].values // 2 - 5_000  # the comma and the bracket of each count
    with asking_throughout(service) as seconds:
        made = send(http, artifacts.with_card_member(lists(values)), "largest")
        assert made.status_code == 201, made.text
        for _ in range(20):
            assert http.get("/models/largest/versions/1/card").status_code == 200
        asked = {"model": "largest", "inputs": [[1.0, "oak"]], "samples": 2}
        assert http.post("/predict", json=asked).status_code == 200
    assert max(seconds) < MOST_SECONDS
    assert loaded_bytes(http) < 2**20
    assert http.delete("/models/largest").status_code == 204
    wait_until(lambda: loaded_bytes(http) == 0)


def loaded_bytes(http: httpx.Client) -> float:
    """What the service says its loaded models hold."""
    name = "credence_models_loaded_bytes "
    lines = http.get("/metrics").text.splitlines()
    return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))
