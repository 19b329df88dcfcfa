"""`/mcp` in front of a real service: whose key it is, and what the key may do."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from app.access.key_ring import RateLimit
from core.access.keys import Keys, Limits, Scope
from credence.serving.agents import PATH
from tests.app.running import Service, answered, serving
from tests.app.test_keys import ADMIN_KEY, bearer, key_file, reading_keys_often, wait_until_known
from tests.credence.agents.sessions import Refused, Session, over_http

TABLE = "size,price\n" + "".join(f"{i},{2 * i}\n" for i in range(40))
VERSION = "2025-06-18"  # of the protocol; requests of this one need no handshake when stateless


@pytest.fixture(scope="module")
def locked(copied: Path) -> Iterator[Service]:
    with (
        reading_keys_often(),
        pytest.MonkeyPatch.context() as patch,
        serving(copied, admin_key_file=key_file(copied.parent)) as service,
    ):
        # A key in the service's own environment must never answer for a caller without one.
        patch.setenv("CREDENCE_KEY", ADMIN_KEY)
        yield service


def made(service: Service, name: str, scope: Scope, limits: Limits | None = None) -> str:
    """A new key that the service has noticed."""
    _, text = Keys(service.context.database).create(name, scope, name, limits or Limits())
    wait_until_known(service, text)
    return text


def use(service: Service, key: str, work: Callable[[Session], Any]) -> Any:
    async def main() -> Any:
        async with over_http(service.url, key) as session:
            return await work(session)

    return anyio.run(main)


def post(service: Service, tool: str, headers: dict[str, str], **arguments: Any) -> httpx.Response:
    """A call of a tool as plain HTTP."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    known = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": VERSION}
    return service.http.post(PATH, json=body, headers=known | headers, timeout=120)


def text_of(answer: httpx.Response) -> str:
    return str(answer.json()["result"]["content"][0]["text"])


def test_without_a_key_nothing_is_listed(locked: Service) -> None:
    for headers in ({}, bearer("cred_none")):
        answer = answered(post(locked, "list_models", headers), 401)
        assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="credence"')


def test_a_key_that_may_predict_cannot_train(locked: Service) -> None:
    async def work(session: Session) -> None:
        for tool, arguments in (
            ("profile_data", {"csv": TABLE}),
            ("model_card", {"model": "price"}),
            ("train", {"dataset": "ds_1", "target": "price", "confirm": True}),
        ):
            with pytest.raises(Refused, match="this needs a key of scope train"):
                await session(tool, **arguments)

    use(locked, made(locked, "reader", Scope.PREDICT), work)


def test_a_wrong_host_a_foreign_page_and_a_large_body_are_refused(service: Service) -> None:
    assert post(service, "list_models", {}).status_code == 200
    answered(post(service, "list_models", {"Host": "evil.example"}), 421)
    answered(post(service, "list_models", {"Origin": "https://evil.example"}), 403)
    assert post(service, "profile_data", {}, csv="x\n" * 2_200_000).status_code == 413


def test_requests_of_tools_count_for_the_keys_limit(locked: Service) -> None:
    """The call takes the only token, so that its tool's own request is refused."""
    assert "models" in text_of(post(locked, "list_models", bearer(ADMIN_KEY)))
    locked.app.state.key_ring._rates = RateLimit(clock=lambda: 0.0)  # no token comes back
    key = made(locked, "slow", Scope.PREDICT, Limits(requests_per_minute=1))
    answer = post(locked, "list_models", bearer(key))
    assert "this key may make 1 requests a minute" in text_of(answer)
    assert post(locked, "list_models", bearer(key)).status_code == 429
