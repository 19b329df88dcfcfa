"""Short runs of every attack against a real server process; `make fuzz` runs them for long."""

from collections import Counter

import pytest

from tests.fuzz import raw
from tests.fuzz.api import attack, operations
from tests.fuzz.bombs import LIMIT, Bomb, bombs
from tests.fuzz.sending import explode, sent_mutated
from tests.fuzz.target import Target

# Those that did harm once, and one of each kind beside; the rest takes minutes.
QUICK = {
    "json lists",
    "json depth",
    "json digits",
    "train numbers",
    "features numbers",
    "inline lists",
    "gzip",
    "gzip members",
    "empty members",
    "v2 gzip",
    "v2 deflate",
    "packed zip",
    "file json keys",
    "npz bytes",
    "npz texts",
    "npz directory",
    "csv columns",
    "csv quotes",
    "csv record",
    "arrow wide schema /datasets",
    "arrow long names /predict?",
    "arrow laughs /datasets",
    "parquet bytes",
    "parquet lying pages",
    "parquet schema",
}
# A body of 64 MiB is held twice while it is joined, or as four times its bytes once parsed; what
# is decoded is held with one copy of it. What the bombs ask for begins at eight times the limit.
PEAK_BYTES = 6 * LIMIT


@pytest.mark.parametrize(
    "bomb", [b for b in bombs() if b.name in QUICK], ids=lambda bomb: bomb.name
)
def test_small_requests_do_not_fill_the_memory(target: Target, bomb: Bomb) -> None:
    grown, status = explode(target, bomb)
    assert status in bomb.statuses
    assert grown < PEAK_BYTES


@pytest.mark.parametrize("name", raw.REFUSED)
def test_what_is_hardly_http_is_refused_once(target: Target, name: str) -> None:
    """One refusal, whatever follows: a second answer would be to a smuggled request."""
    said = raw.statuses(raw.send(target.url, raw.REFUSED[name]))
    assert len(said) == 1
    assert 400 <= said[0] < 500


def test_who_says_nothing_more_holds_up_nobody(target: Target) -> None:
    halves = (b"", b"GET /hea", raw.POST, raw.POST + b"Content-Length: 100\r\n\r\n{")
    held = [raw.hold(target.url, half) for half in halves * 5]
    assert target.is_well()
    for connection in held:
        connection.close()
    assert target.is_well()


def test_answers_are_as_the_document_says(target: Target) -> None:
    answered: Counter[tuple[str, int]] = Counter()
    for operation in operations(target):
        attack(target, operation, examples=12, seed=0, answered=answered)
    assert {status // 100 for _, status in answered} <= {2, 4}
    assert target.is_well()


def test_damaged_bodies_are_answered_or_refused(target: Target) -> None:
    statuses: Counter[int] = Counter()
    for seed in range(8):
        statuses += sent_mutated(target, seed)
    assert statuses[400]
    assert target.is_well()
