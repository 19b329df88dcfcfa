"""The service under a path of a proxy: `CREDENCE_ROOT_PATH`, and `X-Forwarded-Prefix`."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import Receive, Scope, Send

from app.access.session import COOKIE, remember_attempt
from app.http.path_prefix import Proxies, prefix
from app.main import create_app
from core.exceptions import InvalidSetting
from core.settings import load_settings
from credence.client import Client
from tests.app.running import Service, answered, serving
from tests.app.test_keys import ADMIN_KEY, key_file

PREFIX = "/tools/credence"
FORWARDED = {"X-Forwarded-Prefix": PREFIX}
ROW = {"size": 1.0, "wood": "oak", "wet": True, "day": None}
# Paths of the service in attributes that scripts read and give to `at` or `api`; JSON pointers.
FOR_SCRIPTS = {"data-call", "data-then", "data-next", "data-url", "data-file", "data-path"}
OTHERS = {"aria-keyshortcuts"}
REFUSED = (
    "//evil.example",
    "/..",
    "/a/../b",
    "/a//b",
    "/a\tb",
    "/a b",
    "/é",
    '/"x',
    "/models",
    "a",
)


class Addresses(HTMLParser):
    """The attributes of a page that are paths, for browsers to follow."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            path = (value or "").partition("url=")[2] if name == "content" else value or ""
            if path.startswith("/") and name not in FOR_SCRIPTS | OTHERS:
                self.found.append((name, path))


@pytest.fixture(scope="module")
def prefixed(copied: Path) -> Iterator[Service]:
    """A service with the setting, and with keys."""
    with serving(copied, admin_key_file=key_file(copied.parent), root_path=PREFIX) as service:
        yield service


def test_every_link_of_every_page_has_the_prefix(cards: Service) -> None:
    """From the first page on, every link is followed: one page of each route."""
    template = cards.app.state.templates.template
    todo, seen = [PREFIX + "/", f"{PREFIX}/ui/sign-in"], set[str]()
    while todo:
        address = todo.pop()
        route = template(urlsplit(address.removeprefix(PREFIX)).path)
        if route in seen:
            continue
        seen.add(route)
        answer = answered(cards.http.get(address, headers=FORWARDED | {"Accept": "text/html"}))
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        found = Addresses(answer.text).found
        assert [pair for pair in found if not pair[1].startswith(f"{PREFIX}/")] == [], address
        todo += [path for name, path in found if name in ("href", "src", "hx-get", "data-maps")]
    pages = {"/", "/ui/models", "/ui/models/{name}", "/ui/models/{name}/versions/{version}"}
    pages |= {"/ui/predict", "/ui/train", "/ui/jobs", "/ui/datasets", "/ui/compare", "/ui/system"}
    pages |= {"/ui/schedules", "/ui/webhooks", "/ui/search", "/ui/help", "/ui/sign-in"}
    assert pages | {"/ui/static/{file}", "/ui/plotly/{file}"} <= seen


@pytest.mark.parametrize("path", ["/ui/models", f"{PREFIX}/ui/models"])
def test_a_proxy_may_cut_the_prefix_off_or_leave_it(cards: Service, path: str) -> None:
    answer = cards.http.get(path, headers=FORWARDED | {"Accept": "text/html"})
    assert f'href="{PREFIX}/ui/predict' in answer.text
    with_slash = cards.http.get(f"{path.removesuffix('/ui/models')}/models/", headers=FORWARDED)
    assert with_slash.headers["location"] == f"{cards.url}{PREFIX}/models"


def test_documentation_and_errors_have_the_prefix(cards: Service) -> None:
    shown = cards.http.get("/docs", headers=FORWARDED).text
    assert f"url: '{PREFIX}/openapi.json'" in shown
    assert {path.startswith(f"{PREFIX}/docs/") for _, path in Addresses(shown).found} == {True}
    described = cards.http.get("/openapi.json", headers=FORWARDED).json()
    assert described["servers"] == [{"url": PREFIX}]
    assert "servers" not in cards.http.get("/openapi.json").json()
    missing = cards.http.get("/ui/nowhere", headers=FORWARDED | {"Accept": "text/html"})
    assert missing.status_code == 404
    assert all(path.startswith(f"{PREFIX}/") for _, path in Addresses(missing.text).found)


@pytest.mark.parametrize("value", REFUSED)
def test_what_is_no_prefix_is_ignored(cards: Service, value: str) -> None:
    for headers in ({"X-Forwarded-Prefix": value.encode("latin-1")}, {}):
        shown = cards.http.get("/ui/help", headers={b"Accept": b"text/html", **headers}).text  # type: ignore[dict-item]
        assert 'href="/ui/models"' in shown


def test_a_prefix_of_anybody_else_is_ignored(cards: Service) -> None:
    """Only the peer of the connection counts, not who it says that it speaks for."""
    app = cards.app.answer  # type: ignore[attr-defined]
    trusting = Proxies(app, load_settings(trusted_proxies="10.0.0.0/8"))

    def links(peer: str, **headers: str) -> set[bool]:
        async def ask() -> str:
            transport = httpx.ASGITransport(trusting, client=(peer, 1))
            base = cards.url
            async with httpx.AsyncClient(transport=transport, base_url=base) as client:
                answer = await client.get("/ui/nowhere", headers={**FORWARDED, **headers})
                return answer.headers.get("location", "") or answer.text

        return {PREFIX in anyio.run(ask)}

    assert links("10.1.2.3") == {True}
    assert links("192.0.2.7") == {False}
    assert links("192.0.2.7", **{"X-Forwarded-For": "10.1.2.3"}) == {False}
    assert links("10.1.2.3", **{"X-Forwarded-For": "192.0.2.7"}) == {True}


@pytest.mark.parametrize("value", [*REFUSED, "/x/", "/", "/" + "x" * 256])
def test_a_wrong_setting_is_named_at_the_start(tmp_path: Path, value: str) -> None:
    with pytest.raises(InvalidSetting, match=re.escape(f"CREDENCE_ROOT_PATH={value}: ")) as found:
        create_app(load_settings(data_dir=tmp_path, root_path=value))
    assert "/credence" in str(found.value)


def test_addresses_in_headers_have_the_prefix_and_those_of_others_stay() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        target = request.query_params["to"]
        response = RedirectResponse(target) if target else PlainTextResponse(prefix())
        response.set_cookie("a", "b")
        remember_attempt(response, "c", is_secure=False)
        await response(scope, receive, send)

    async def ask(to: str) -> httpx.Response:
        transport = httpx.ASGITransport(Proxies(app, load_settings(root_path=PREFIX)))
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.get(f"{PREFIX}/place", params={"to": to})

    for to in ("//here/x", "http://here/login", "https://sign-on.example/place"):
        assert anyio.run(ask, to).headers["location"] == to
    assert anyio.run(ask, "/x?y=/z").headers["location"] == f"{PREFIX}/x?y=/z"
    answer = anyio.run(ask, "")
    assert answer.text == PREFIX
    paths = [re.findall(r"Path=([^;]*)", text) for text in answer.headers.get_list("set-cookie")]
    assert paths == [[PREFIX], [f"{PREFIX}/ui/sign-in"]]


def test_signing_in_is_for_this_path(prefixed: Service) -> None:
    page = {"Accept": "text/html"}
    asked = prefixed.http.get(f"{PREFIX}/ui/models?x=1", headers=page)
    assert asked.headers["location"] == f"{PREFIX}/ui/sign-in?next=/ui/models"
    shown = prefixed.http.get(asked.headers["location"], headers=page).text
    assert 'data-next="/ui/models"' in shown
    path = f"{PREFIX}/ui/session"
    signed_in = httpx.post(f"{prefixed.url}{path}", json={"key": ADMIN_KEY})
    cookie = signed_in.headers["set-cookie"]
    assert f"; Path={PREFIX};" in f"{cookie};"
    key = {"Cookie": f"{COOKIE}={signed_in.cookies[COOKIE]}"}
    assert prefixed.http.get(PREFIX, headers=page | key).status_code == 200


def test_paths_need_keys_with_the_prefix_and_without(prefixed: Service) -> None:
    for path in ("/models", f"{PREFIX}/models", f"{PREFIX}{PREFIX}/models"):
        assert prefixed.http.get(path).status_code == 401
    for path in ("/health/live", f"{PREFIX}/health/live", f"{PREFIX}/v2/health/live"):
        assert prefixed.http.get(path).status_code == 200


def test_the_client_takes_an_address_with_a_path(prefixed: Service) -> None:
    with Client(prefixed.url + PREFIX, key=ADMIN_KEY) as client:
        assert client.predict("price", [ROW]).mean
        assert [model["name"] for model in client.models()] == ["price", "tree"]
        assert "</style>" in client.card_page("price", 1)
        columns = {"x": [1.0, 2.0, 3.0, 4.0] * 5, "y": [1.0, 2.0, 3.0, 4.0] * 5}
        dataset = client.upload(columns, "few")
        assert client.dataset(dataset["id"])["name"] == "few"
    key = {"Authorization": f"Bearer {ADMIN_KEY}"}
    infer = f"{PREFIX}/v2/models/price"
    assert prefixed.http.get(infer, headers=key).json()["name"] == "price"


def test_created_things_are_below_the_prefix_each_time(prefixed: Service) -> None:
    """The response to an `Idempotency-Key` is kept without a prefix: each answer has its own."""
    headers = {"Authorization": f"Bearer {ADMIN_KEY}", "Idempotency-Key": "once"}
    headers["Content-Type"] = "text/csv"
    table = "a,b\n" + "".join(f"{i},{i}\n" for i in range(20))
    for given, wanted in (({}, PREFIX), ({"X-Forwarded-Prefix": "/other/"}, "/other")):
        answer = prefixed.http.post("/datasets?name=t", content=table, headers=headers | given)
        assert answer.headers["location"].startswith(f"{wanted}/datasets/ds_"), answer.text
