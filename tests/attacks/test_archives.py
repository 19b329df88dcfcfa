"""An archive of a model that unpacks to much JSON: refused before it is parsed."""

from pathlib import Path

import httpx
import psutil
import pytest

from tests.attacks import artifacts
from tests.attacks.asking import asking_throughout
from tests.credence.running import serving

pytestmark = [pytest.mark.slow, pytest.mark.timing]

MOST_SECONDS = 1.0  # of the processor: a card of 63 MB of empty lists took 13
MOST_BYTES = 200 * 2**20  # it took 1.5 GB; a service that imports nothing but torch moves by 50 MB


def test_a_card_of_63_megabytes(tmp_path: Path) -> None:
    lists = b"[" + b"[]," * (21_000_000 - 1) + b"[]]"
    bomb = artifacts.packed(artifacts.with_card_member(lists))
    with serving(tmp_path) as service, httpx.Client(base_url=service.url, timeout=280) as http:
        process = psutil.Process(service.process.pid)
        before = process.memory_info().rss
        with asking_throughout(service) as seconds:
            headers = {"Content-Type": "application/x-tar"}
            answer = http.post("/models/bomb/versions", content=bomb, headers=headers)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["path"] == "/card.json"
        assert http.get("/models/bomb").status_code == 404
        assert max(seconds) < MOST_SECONDS
        assert process.memory_info().rss - before < MOST_BYTES
