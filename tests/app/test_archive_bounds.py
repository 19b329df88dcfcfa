"""What an archive may hold: bytes and values are counted before anything is made of them."""

import pytest

from core.registry.documents import BOUNDS, DESCRIPTION
from models.artifact.files import CARD, MODEL
from tests.app.running import Service
from tests.app.test_archives import archive, changed, put, send, unpacked, with_sums
from tests.waiting import wait_until

pytestmark = pytest.mark.stack

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
        (b'"' + b"x" * CARD_BYTES + b'"', f"bytes: at most {CARD_BYTES} are read"),
    ],
    ids=["lists", "a text"],
)
def test_a_card_of_too_much_is_refused(
    service: Service, archive: bytes, more: bytes, message: str
) -> None:
    answer = send(service, with_card(archive, more), "bomb")
    assert answer.status_code == 422, answer.text
    [error] = answer.json()["errors"]
    assert error["path"] == "/card.json"
    assert message in error["message"]


@pytest.mark.parametrize("field", ["bytes", "values"])
def test_a_description_that_the_database_would_keep_is_bounded(
    service: Service, archive: bytes, field: str
) -> None:
    large = "x" * 2**16
    many = DESCRIPTION.num_bytes // len(large) + 1
    more = [large] * many if field == "bytes" else [0] * DESCRIPTION.values
    change = put("variants", 0, "metrics", "more", value=more)
    answer = send(service, changed(change)(unpacked(archive)), "bomb")
    assert answer.status_code == 422, answer.text
    [error] = answer.json()["errors"]
    assert error["path"].startswith(f"/{MODEL}")


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
