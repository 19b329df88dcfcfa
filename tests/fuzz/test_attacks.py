"""Short runs of every attack against a real server process; `make fuzz` runs them for long."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.app.cards import publish_all
from tests.fuzz import raw
from tests.fuzz.api import attack, operations
from tests.fuzz.bombs import LIMIT, bombs
from tests.fuzz.mutations import explode, sent_mutated
from tests.fuzz.target import Target, attacked


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    trained = tmp_path_factory.mktemp("trained")
    publish_all(trained / "data")
    limits = {"MAX_BODY_BYTES": LIMIT, "MAX_DATASET_BYTES": LIMIT}
    settings = {f"CREDENCE_{name}": str(value) for name, value in limits.items()}
    with attacked(trained / "data", tmp_path_factory.mktemp("attacked"), **settings) as running:
        yield running


# One of each kind that did harm once; `make fuzz` sends all.
QUICK = {"json depth", "inline lists", "gzip members", "npz directory", "csv quotes"}
QUICK |= {"arrow laughs /datasets", "parquet lying pages"}
# A body of 64 MiB is held twice while it is joined, or as four times its bytes once parsed; what
# is decoded is held with one copy of it. What the bombs ask for begins at eight times the limit.
PEAK_BYTES = 6 * LIMIT


def test_small_requests_do_not_fill_the_memory(target: Target) -> None:
    sent = [bomb for bomb in bombs() if bomb.name in QUICK]
    assert len(sent) == len(QUICK)
    for bomb in sent:
        grown, status = explode(target, bomb)
        assert status in bomb.statuses, bomb.name
        assert grown < PEAK_BYTES, bomb.name


def test_what_is_hardly_http_is_refused_once(target: Target) -> None:
    """One refusal, whatever follows: a second answer would be to a smuggled request."""
    for name, data in raw.REFUSED.items():
        raw.refused(target.url, name, data)


def test_who_says_nothing_more_holds_up_nobody(target: Target) -> None:
    halves = (b"", b"GET /hea", raw.POST, raw.POST + b"Content-Length: 100\r\n\r\n{")
    held = [raw.hold(target.url, half) for half in halves * 5]
    assert target.is_well()
    for connection in held:
        connection.close()


def test_answers_are_as_the_document_says(target: Target) -> None:
    answered: Counter[tuple[str, int]] = Counter()
    for operation in operations(target):
        attack(target, operation, examples=12, seed=0, answered=answered)
    assert {status // 100 for _, status in answered} <= {2, 4}
    assert target.is_well()


def test_damaged_bodies_are_answered_or_refused(target: Target) -> None:
    statuses: Counter[int] = Counter()
    for seed in range(4):
        statuses += sent_mutated(target, seed)
    assert statuses[400]
    assert target.is_well()
