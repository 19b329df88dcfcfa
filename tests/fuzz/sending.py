"""Requests with bodies of our own making, and what every answer to them must be."""

import random
from collections import Counter

import httpx

from tests.fuzz.bombs import Bomb
from tests.fuzz.mutations import mutated, requests
from tests.fuzz.target import Target
from tests.waiting import PATIENCE


def explode(target: Target, bomb: Bomb) -> tuple[int, int]:
    """By how many bytes the server has grown at most, and the status."""
    body = bomb.body()
    target.forget_peak()
    before = target.process.memory_info().rss
    try:
        answer = httpx.post(
            f"{target.url}{bomb.path}", content=body, headers=bomb.headers, timeout=PATIENCE
        )
    except httpx.HTTPError as error:
        error.add_note(f"bomb {bomb.name}")
        raise
    check(answer, f"bomb {bomb.name}")
    return target.peak_bytes() - before, answer.status_code


def sent_mutated(target: Target, seed: int) -> Counter[int]:
    """Every valid request, damaged by this seed, and the statuses of the answers."""
    statuses: Counter[int] = Counter()
    with httpx.Client(base_url=target.url, timeout=PATIENCE) as client:
        for number, valid in enumerate(requests()):
            body = mutated(valid.body, random.Random(f"{seed}/{number}"))
            answer = client.post(valid.path, content=body, headers=valid.headers)
            check(answer, f"seed {seed}, request {number}: {valid.path} {valid.headers} {body!r}")
            target.learn(answer.text if len(answer.content) < 2**20 else "")
            statuses[answer.status_code] += 1
    return statuses


def check(answer: httpx.Response, what: str) -> None:
    """Done, or a problem that says what is wrong; 503 only with the time to come back."""
    status = answer.status_code
    is_polite = status == 503 and "retry-after" in answer.headers
    assert status < 500 or is_polite, f"{status} to {what[:2000]}: {answer.text[:500]}"
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json", what[:2000]
        assert answer.json()["status"] == status, what[:2000]
        assert "Traceback" not in answer.text, what[:2000]
