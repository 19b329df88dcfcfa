"""Small requests whose parsing took seconds: each is answered at once, and says why it is refused.

`test_patterns.py` shows that the time is linear; here are the answers.
"""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.app.running import answered
from tests.attacks.conftest import Guarded

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def nobody(guarded: Guarded) -> Iterator[httpx.Client]:
    with guarded.client("") as client:
        yield client


@pytest.fixture
def eve(guarded: Guarded) -> Iterator[httpx.Client]:
    with guarded.client(guarded.eve) as client:
        yield client


def test_a_key_is_found_among_other_cookies(guarded: Guarded, nobody: httpx.Client) -> None:
    for cookie, status in (
        (f'theme=dark; credence_key="{guarded.eve}"; a=b=c', 200),
        ("=" * 60_000 + '"', 401),
    ):
        assert nobody.get("/models", headers={"Cookie": cookie}).status_code == status


def test_a_long_content_type_is_refused(eve: httpx.Client) -> None:
    long = 'application/json; a="' + ";" * 60_000
    for path in ("/ui/session", "/predict"):
        answer = eve.post(path, content=b'{"key": "a"}', headers={"Content-Type": long})
        assert answer.status_code == 415


def test_an_origin_that_is_no_address_is_foreign(nobody: httpx.Client) -> None:
    answer = nobody.post("/predict", content=b"{}", headers=JSON | {"Origin": "http://["})
    assert answer.status_code == 403


def test_the_form_for_keys_takes_a_short_body(nobody: httpx.Client) -> None:
    names = {"key": "a"} | {str(number): 0 for number in range(130_000)}
    assert nobody.post("/ui/session", json=names).status_code == 413


def test_only_the_first_unknown_parameters_are_named(eve: httpx.Client) -> None:
    query = "&".join(f"a{number}" for number in range(9_000))
    answer = answered(eve.get(f"/models?{query}"), 422)
    assert len(answer.json()["errors"]) == 100


def test_many_wrong_values_are_counted_and_not_named(eve: httpx.Client) -> None:
    body = {"model": "m", "inputs": [[1.0]], "costs": {"matrix": [[""]] * 100_000}}
    answer = answered(eve.post("/predict", json=body), 422)
    assert len(answer.content) < 1000


@pytest.mark.parametrize(
    ("exceeds", "status"),
    [("{}," * 1_000_000 + "{}", 413), ('"",' * 500_000 + '""', 200), ('"",' * 500 + '""', 200)],
    ids=["objects", "texts", "a few texts"],
)
def test_the_arguments_of_a_tool_are_counted(eve: httpx.Client, exceeds: str, status: int) -> None:
    arguments = f'{{"model": "m", "rows": [{{"a": 1}}], "exceeds": [{exceeds}]}}'
    call = f'{{"name": "predict", "arguments": {arguments}}}'
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {call}}}'
    accepts = JSON | {"Accept": "application/json, text/event-stream"}
    answer = eve.post("/mcp", content=body.encode(), headers=accepts)
    assert answer.status_code == status, answer.text[:500]
    assert len(answer.content) < 2000
    if status == 200:
        assert json.loads(answer.content)["result"]["isError"]
