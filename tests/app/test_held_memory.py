"""What bodies and responses hold is reserved, refused if it is too much, and given back."""

import gzip
import threading
from collections.abc import Iterator

import pytest

from app.http.held_memory import OF_BODY, OF_RESPONSE, HeldMemory
from tests.app.conftest import MakeService
from tests.app.running import Service

ROW = [1.0, "oak", True, None]
BUDGET = 2**26


@pytest.fixture
def small(make_service: MakeService) -> Iterator[Service]:
    """A service of little memory. At its end, nothing is reserved but for the model."""
    service = make_service(memory_bytes=BUDGET)
    assert service.post("/predict", {"model": "price", "inputs": [ROW]}).status_code == 200
    yield service
    held = service.context.memory.reserved()
    assert held.pop("models") > 0
    assert set(held.values()) <= {0}


def test_a_body_that_never_fits_is_too_large(small: Service) -> None:
    body = {"model": "price", "inputs": [ROW], "texts": "x" * (BUDGET // OF_BODY)}
    answer = small.post("/predict", body)
    assert answer.status_code == 413
    assert "CREDENCE_MEMORY_BYTES" in answer.json()["detail"]


def test_a_response_that_never_fits_is_too_large(small: Service) -> None:
    values = BUDGET // (20 * OF_RESPONSE)
    asked = {"model": "price", "inputs": [ROW] * 200, "samples": values // 200}
    assert small.post("/predict", asked).status_code == 200
    answer = small.post("/predict", asked | {"return_draws": True})
    assert answer.status_code == 413


def test_while_others_hold_the_memory_large_ones_wait_and_small_ones_are_answered(
    small: Service,
) -> None:
    asked = {"model": "price", "inputs": [ROW] * 10_000, "samples": 2}
    memory = small.context.memory
    free = memory.total - sum(memory.reserved().values())
    with memory.reserve("uploads", free):
        answer = small.post("/predict", asked)
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert "CREDENCE_MEMORY_BYTES" in answer.json()["detail"]
        few = asked | {"inputs": [ROW]}
        assert small.post("/predict", few).status_code == 200
    assert small.post("/predict", asked).status_code == 200
    assert small.metric("credence_memory_reserved_bytes", use="bodies") == 0
    assert small.metric("credence_memory_limit_bytes") == BUDGET


def test_blanks_are_inflated_in_a_thread_and_held(
    small: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """63 kB became 62 MB on the event loop, and were held only afterwards."""
    hold, seen = HeldMemory.body, list[tuple[str, int]]()

    def noted(held: HeldMemory, num_bytes: int, declared: int) -> None:
        seen.append((threading.current_thread().name, num_bytes))
        hold(held, num_bytes, declared)

    monkeypatch.setattr(HeldMemory, "body", noted)
    blanks = gzip.compress(b" " * (BUDGET // (8 * OF_BODY)))
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    answer = small.http.post("/v2/models/price/infer", content=blanks, headers=headers)
    assert answer.status_code == 400
    ((thread, held),) = seen
    assert thread.startswith("large-work")
    assert held >= BUDGET // (8 * OF_BODY)
