"""People sign in to the dashboard with a real provider, in a real browser."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from app.access.oidc.code_flow import Attempt
from app.access.session import ATTEMPT_COOKIE, COOKIE
from tests.app.browser import Visit
from tests.app.running import Service, answered, serving
from tests.oidc.running import RunningProvider, new_key, running_provider

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def provider() -> Iterator[RunningProvider]:
    with running_provider(new_key("first")) as running:
        yield running


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """The pages of the provider give a browser reasons to complain."""
    visit = Visit(browser)
    yield visit
    visit.context.close()


@pytest.fixture(scope="module")
def guarded(
    provider: RunningProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("guarded"), **provider.settings) as running:
        yield running


def sign_in(page: Page, name: str) -> None:
    """With the provider's own form for development: any name and any password."""
    page.get_by_role("link", name="Sign in with 127.0.0.1").click()
    fill_in(page, name)


def fill_in(page: Page, name: str) -> None:
    page.locator("[name=login]").fill(name)
    page.locator("[name=password]").fill("any")
    page.locator("[type=submit]").click()
    page.locator("[type=submit]").click()  # consent


@pytest.mark.pages
def test_a_person_signs_in_and_comes_to_the_wanted_page(guarded: Service, visit: Visit) -> None:
    page = visit.go(f"{guarded.url}/ui/datasets")
    sign_in(page, "ada")
    expect(page.get_by_role("heading", name="Data", exact=True)).to_be_visible()
    assert urlsplit(page.url).path == "/ui/datasets"
    assert page.locator("#sign-out").get_attribute("title") == "Signed in as ada"
    kept = {cookie["name"]: cookie for cookie in visit.context.cookies(guarded.url)}
    assert (kept[COOKIE]["httpOnly"], kept[COOKIE]["sameSite"]) == (True, "Strict")
    assert ATTEMPT_COOKIE not in kept
    page.locator("#sign-out").click()
    expect(page.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()


@pytest.mark.pages
def test_a_forged_cookie_leads_to_no_other_site(guarded: Service, visit: Visit) -> None:
    """Whoever can set a cookie for the host could let the sign-in end anywhere."""
    page = visit.go(f"{guarded.url}/ui/datasets")
    page.get_by_role("link", name="Sign in with 127.0.0.1").click()
    [kept] = [each for each in visit.context.cookies() if each.get("name") == ATTEMPT_COOKIE]
    forged = replace(Attempt.of_cookie(kept["value"]), next="//evil.example/")
    kept["value"] = forged.to_cookie()
    visit.context.add_cookies([kept])  # type: ignore[list-item]
    fill_in(page, "ada")
    expect(page.locator("#sign-out")).to_be_visible()
    assert page.url.startswith(guarded.url)


@pytest.mark.pages
def test_a_person_without_a_scope_is_told_so(guarded: Service, visit: Visit) -> None:
    page = visit.go(f"{guarded.url}/ui/datasets")
    sign_in(page, "stranger")
    expect(page.get_by_text("CREDENCE_OIDC_SCOPES")).to_be_visible()


def begin(
    guarded: Service, headers: dict[str, str] | None = None
) -> tuple[httpx.Response, dict[str, list[str]]]:
    """The answer to the beginning of a sign-in, and what it asks of the provider."""
    response = answered(guarded.http.get("/ui/sign-in/start?next=/ui/models", headers=headers), 303)
    return response, parse_qs(urlsplit(response.headers["location"]).query)


def test_each_sign_in_has_secrets_of_its_own(guarded: Service) -> None:
    (_, first), (_, second) = begin(guarded), begin(guarded)
    for name in ("state", "nonce", "code_challenge"):
        assert first[name] != second[name]
    assert first["code_challenge_method"] == ["S256"]
    assert first["redirect_uri"] == [f"{guarded.url}/ui/sign-in/callback"]


def test_the_provider_sends_people_back_below_the_prefix(guarded: Service) -> None:
    response, asked = begin(guarded, {"X-Forwarded-Prefix": "/tools"})
    assert asked["redirect_uri"] == [f"{guarded.url}/tools/ui/sign-in/callback"]
    assert "; Path=/tools/ui/sign-in;" in response.headers["set-cookie"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"state": "of-another-browser", "code": "c"}, "this browser"),
        ({"code": "c"}, "this browser"),
        ({"state": "", "code": "c", "iss": "https://other.example"}, "another provider"),
        ({"state": "", "error": "access_denied"}, "access_denied"),
        ({"state": "", "code": "made-up"}, "no token"),
        ({"state": ""}, "missing"),
    ],
)
def test_answers_of_no_sign_in_fail(guarded: Service, answer: dict[str, str], reason: str) -> None:
    attempt = Attempt.begun("/ui/models")
    given = answer | ({"state": attempt.state} if answer.get("state") == "" else {})
    cookies = {"Cookie": f"{ATTEMPT_COOKIE}={attempt.to_cookie()}"}
    response = guarded.http.get("/ui/sign-in/callback", params=given, headers=cookies)
    assert response.status_code == 422
    assert reason in response.text
    assert COOKIE not in response.headers.get("set-cookie", "")


def test_without_a_client_there_is_no_sign_in(provider: RunningProvider, tmp_path: Path) -> None:
    settings = {k: v for k, v in provider.settings.items() if k != "oidc_client_id"}
    with serving(tmp_path, **settings) as service:
        assert service.http.get("/ui/sign-in/start").status_code == 404
