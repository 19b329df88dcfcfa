"""What an archive may hold: bytes and values are counted before anything is made of them."""

import json
from pathlib import Path

import pytest

from core.process.held_bytes import held_bytes
from core.registry.documents import BOUNDS, DESCRIPTION
from models.artifact.files import CARD, MODEL
from tests.app.running import Service
from tests.app.test_archives import archive, changed, put, send, unpacked, with_sums
from tests.waiting import wait_until

__all__ = ["archive"]

CARD_BYTES, CARD_VALUES = BOUNDS[CARD].num_bytes, BOUNDS[CARD].values


def with_card(data: bytes, more: bytes) -> bytes:
    """The archive with one more member, `a`, in its card."""
    files = unpacked(data)
    card = files[CARD].rstrip().removesuffix(b"}") + b', "a": ' + more + b"}"
    return with_sums(files | {CARD: card})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (b"[" + b"[]," * CARD_VALUES + b"[]]", f"values: at most {CARD_VALUES} are read"),
        (b"[" + b"0," * CARD_VALUES + b"0]", f"values: at most {CARD_VALUES} are read"),
        (b'"' + b"x" * CARD_BYTES + b'"', f"bytes: at most {CARD_BYTES} are read"),
    ],
    ids=["lists", "numbers", "a text"],
)
def test_a_card_of_too_much_is_refused(
    service: Service, archive: bytes, more: bytes, message: str
) -> None:
    answer = send(service, with_card(archive, more), "bomb")
    assert answer.status_code == 422, answer.text
    [error] = answer.json()["errors"]
    assert error["path"] == "/card.json"
    assert message in error["message"]


def test_a_card_within_the_bounds_is_read(service: Service, archive: bytes) -> None:
    lists = CARD_VALUES // 2 - 5_000  # each counts twice: its comma and its bracket
    made = send(service, with_card(archive, b"[" + b"[]," * lists + b"[]]"), "full")
    assert made.status_code == 201, made.text
    for _ in range(2):
        card = service.http.get("/models/full/versions/1/card")
        assert card.json().keys() == service.http.get("/models/price/versions/1/card").json().keys()
    assert service.http.delete("/models/full").status_code == 204


@pytest.mark.parametrize("field", ["notes", "metrics"])
def test_a_description_that_the_database_would_keep_is_bounded(
    service: Service, archive: bytes, field: str
) -> None:
    large = "x" * 2**16
    many = DESCRIPTION.num_bytes // len(large) + 1
    change = {
        "notes": put("notes", value=[large] * many),
        "metrics": put("variants", 0, "metrics", "more", value=[large] * many),
    }[field]
    answer = send(service, changed(change)(unpacked(archive)), "bomb")
    assert answer.status_code == 422, answer.text
    [error] = answer.json()["errors"]
    assert error["path"].startswith(f"/{MODEL}/")
    assert f"may have {DESCRIPTION.num_bytes} in all" in error["message"]


def test_many_values_in_a_description_are_refused(service: Service, archive: bytes) -> None:
    change = put("variants", 0, "metrics", "more", value=[0] * DESCRIPTION.values)
    answer = send(service, changed(change)(unpacked(archive)), "bomb")
    assert answer.status_code == 422, answer.text
    assert f"at most {DESCRIPTION.values} are read" in answer.text


def test_loaded_models_are_counted_with_all_they_hold_and_freed_when_deleted(
    service: Service, archive: bytes
) -> None:
    notes = ["x" * 2**16] * 16
    data = changed(put("notes", value=notes))(unpacked(archive))
    assert send(service, data, "heavy").status_code == 201
    before = service.metric("credence_models_loaded_bytes")
    asked = {"inputs": [[1.0, "oak", True, None]], "model": "heavy", "samples": 2}
    assert service.post("/predict", asked).status_code == 200
    assert service.metric("credence_models_loaded_bytes") - before > 2**20
    loaded = [one.model for one in service.services.predictor.cache.loaded()]
    assert all(model.card == {} and model.history == () for model in loaded)
    assert service.http.delete("/models/heavy").status_code == 204
    wait_until(lambda: service.metric("credence_models_loaded_bytes") <= before)


def test_held_bytes_are_those_of_the_parts() -> None:
    text = "x" * 1000
    assert held_bytes([text, text]) == held_bytes([text]) + 8  # one pointer more
    nested = json.loads("[" + "[]," * 999 + "[]]")
    assert held_bytes(nested) > 1000 * 56
    assert held_bytes(Path) == 0
