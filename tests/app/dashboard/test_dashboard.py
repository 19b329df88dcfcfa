"""The dashboard's frame: who may see it, how a browser brings a key, what it says of errors."""

import hashlib
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser

from app.access.session import COOKIE
from app.ui.pages import plotly_data
from app.ui.version_tabs import Tab
from tests.app.browser import Visit, serious_problems
from tests.app.running import Service, serving
from tests.app.test_keys import ADMIN_KEY, key_file

# Of dist/htmx.min.js in the package htmx.org 2.0.11, as npm has it.
HTMX = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
# Of plotly-basic.min.js in the package plotly.js-basic-dist-min 4.1.1, as npm has it.
PLOTLY_BASIC = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
WIDTHS = (360, 390, 900, 1280)  # small phone, phone, tablet, laptop
VERSION = "/ui/models/price/versions/champion"
PAGES = (
    "/",
    "/ui/models",
    "/ui/models/price",
    *(f"{VERSION}?tab={tab.value}" for tab in Tab),
    "/ui/models/price/versions/1/expected",
    "/ui/predict?model=price",
    "/ui/compare?versions=price/1/0,price/2/0.5",
    "/ui/datasets",
    "/ui/datasets/{dataset}",
    "/ui/train",
    "/ui/train?dataset={dataset}&request={{}}",
    '/ui/train?dataset={dataset}&request={{"target":"price"}}',
    "/ui/jobs",
    "/ui/jobs?status=failed",
    "/ui/jobs/{job}",
    "/ui/schedules",
    "/ui/webhooks",
    "/ui/system",
    "/ui/help",
)


@pytest.fixture(scope="module")
def locked(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("locked-dashboard")
    shutil.copytree(trained, folder / "data")
    names = {"allowed_hosts": "credence.example"}
    with serving(folder / "data", admin_key_file=key_file(folder), **names) as service:
        yield service


def own(service: Service) -> dict[str, str]:
    """The headers of a request that a page of this service makes."""
    return {"Origin": service.url}


def address(service: Service, path: str) -> str:
    """Of a page; `{dataset}` and `{job}` stand for those of the model `price`."""
    job = service.http.get("/jobs", params={"model": "price"}).json()["data"][0]["id"]
    version = service.http.get("/models/price/versions/1").json()
    return service.url + path.format(dataset=version["dataset"], job=job)


@contextmanager
def signed_in(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=120) as browser:
        answer = browser.post("/ui/session", json={"key": f" {ADMIN_KEY} "}, headers=own(service))
        assert answer.status_code == 204
        yield browser


@pytest.mark.parametrize("path", PAGES)
def test_every_page_can_be_read_by_all_and_on_a_phone(
    service: Service, browser: Browser, path: str
) -> None:
    """At each width in light, then in dark, where all but the colours is the same."""
    visit = Visit(browser, "light", width=WIDTHS[0])
    page = visit.go(address(service, path))
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="light")
        page.reload()
        assert page.evaluate("document.documentElement.scrollWidth") == width
        entry = page.locator("nav [aria-current=page]")
        inside = f"e => e.getBoundingClientRect().right <= {width}"
        assert all(e.evaluate(inside) for e in entry.all())
        assert serious_problems(page) == []
        page.emulate_media(color_scheme="dark")
        assert serious_problems(page, "color-contrast") == []
    assert visit.complaints == []
    assert all(url.startswith((service.url, "data:")) for url in visit.requests)
    visit.context.close()


def test_the_library_that_ships_is_the_one_that_was_released() -> None:
    script = Path("app/ui/static/vendor/htmx.min.js").read_bytes()
    assert hashlib.sha256(script).hexdigest() == HTMX


def test_plotly_has_one_release() -> None:
    """Its basic bundle draws charts, its Python package's script heat maps, on the same page."""
    bundle = Path("app/ui/static/vendor/plotly-basic.min.js").read_bytes()
    whole = (plotly_data() / "plotly.min.js").read_bytes()
    first, second = (
        re.search(rb"plotly\.js (?:\(.*?\) )?v([\d.]+)", s[:300]) for s in (bundle, whole)
    )
    assert first
    assert second
    assert first[1] == second[1]
    assert hashlib.sha256(bundle).hexdigest() == PLOTLY_BASIC


def test_a_theme_that_was_chosen_stays(service: Service, browser: Browser) -> None:
    visit = Visit(browser, "light")
    page = visit.go(service.url)
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.get_by_role("button", name="Light or dark").click()
    dark = page.evaluate(colour)
    assert dark != light
    page.reload()
    assert page.evaluate(colour) == dark
    visit.context.close()


def test_without_a_key_a_page_asks_for_one_and_goes_on(locked: Service, browser: Browser) -> None:
    visit = Visit(browser)
    page = visit.go(f"{locked.url}/")
    assert page.url == f"{locked.url}/ui/sign-in?next=/"
    page.get_by_label("Key").fill("guessed")
    page.get_by_role("button", name="Sign in").click()
    assert "not known" in page.get_by_role("alert").inner_text()
    page.get_by_label("Key").fill(ADMIN_KEY)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{locked.url}/")
    assert page.get_by_role("link", name="All models").is_visible()
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/ui/sign-in")
    assert page.goto(f"{locked.url}/").url.startswith(f"{locked.url}/ui/sign-in")
    visit.context.close()


def test_the_cookie_is_for_this_site_alone(locked: Service) -> None:
    answer = httpx.post(
        f"{locked.url}/ui/session",
        json={"key": ADMIN_KEY},
        headers={"Origin": locked.url},
        timeout=120,
    )
    told = answer.headers["Set-Cookie"].lower()
    assert told.startswith(COOKIE)
    assert "httponly" in told
    assert "samesite=strict" in told
    assert "secure" not in told
    proxied = {"Origin": "https://credence.example", "X-Forwarded-Host": "credence.example"}
    answer = httpx.post(
        f"{locked.url}/ui/session", json={"key": ADMIN_KEY}, headers=proxied, timeout=120
    )
    assert "; secure" in answer.headers["Set-Cookie"].lower()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},  # another port is the same site: its cookie comes along
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_others_change_nothing(
    locked: Service, service: Service, headers: dict[str, str]
) -> None:
    """Neither with a key from a cookie, nor where no key is asked for."""
    with signed_in(locked) as browser:
        assert browser.get("/models", headers=headers).status_code == 200  # unreadable: no CORS
        refused = browser.post(
            "/datasets", content="a\n1\n", headers=headers | {"Content-Type": "text/csv"}
        )
        assert refused.status_code == 403
        assert "may change nothing here" in refused.json()["detail"]
        assert browser.delete("/models/price", headers=headers).status_code == 403
    assert service.http.delete("/models/price", headers=headers).status_code == 403
    assert service.http.get("/models/price").status_code == 200


def test_pages_of_this_service_and_programs_may(locked: Service) -> None:
    """Also behind a proxy that asks by another name."""
    body = {"model": "price", "inputs": [[1.0, "oak", True, None]]}
    with signed_in(locked) as browser:
        for headers in (
            own(locked),
            {"Origin": "https://credence.example", "X-Forwarded-Host": "credence.example"},
            {"Origin": "https://credence.example", "Sec-Fetch-Site": "same-origin"},
            {"Sec-Fetch-Site": "none"},
            {},
        ):
            assert browser.post("/predict", json=body, headers=headers).status_code == 200
    program = {"Authorization": f"Bearer {ADMIN_KEY}", "Origin": "https://notebook.example"}
    assert locked.http.post("/predict", json=body, headers=program).status_code == 200


def test_a_bad_cookie_is_no_key(locked: Service) -> None:
    for cookie in ("credence_key=", "credence_key=guessed", "credence_key=\xff", '="', "a=b; c"):
        answer = httpx.get(
            f"{locked.url}/models", headers={"Cookie": cookie.encode("latin-1")}, timeout=120
        )
        assert answer.status_code == 401


@pytest.mark.parametrize("next", ["//evil.example", "/\\evil.example", "https://evil.example"])
def test_signing_in_leads_nowhere_else(service: Service, next: str) -> None:
    page = service.http.get("/ui/sign-in", params={"next": next})
    assert 'data-next="/"' in page.text


def test_errors_of_pages_are_pages(service: Service) -> None:
    answer = service.http.get("/ui/nowhere")
    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/html")
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert answer.headers["X-Request-ID"] in answer.text
    assert "There is no page at this address" in answer.text
    assert "nothing is at /ui/nowhere" in answer.text
    assert "belongs to somebody else" not in answer.text
    missing = service.http.get("/ui/datasets/ds_0")
    assert (missing.status_code, "belongs to somebody else" in missing.text) == (404, True)
    assert service.http.get("/nowhere").headers["Content-Type"] == "application/problem+json"
