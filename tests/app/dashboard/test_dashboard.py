"""The dashboard's frame: who may see it, and what its templates name."""

import hashlib
import html
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from app.access.session import COOKIE
from app.ui.version_tabs import Tab
from core.access.keys import Keys, Scope
from tests.app.conftest import MakeService
from tests.app.running import Service, answered, serving
from tests.app.test_keys import ADMIN_KEY, bearer, key_file, made
from tests.credence.invoking import command
from tests.credence.test_docs import anchors
from tests.waiting import wait_until

# Of dist/htmx.min.js in the package htmx.org 2.0.11, as npm has it.
HTMX = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
# Of plotly-basic.min.js in the package plotly.js-basic-dist-min 4.1.1, as npm has it.
PLOTLY_BASIC = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
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


def own(service: Service) -> dict[str, str]:
    """The headers of a request that a page of this service makes."""
    return {"Origin": service.url}


def address(service: Service, path: str) -> str:
    """Of a page; `{dataset}` and `{job}` stand for those of the model `price`."""
    job = service.http.get("/jobs", params={"model": "price"}).json()["data"][0]["id"]
    version = service.http.get("/models/price/versions/1").json()
    return service.url + path.format(dataset=version["dataset"], job=job)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_there(service: Service, path: str) -> None:
    assert service.http.get(address(service, path)).status_code == 200


@pytest.mark.parametrize(
    ("name", "released"), [("htmx.min.js", HTMX), ("plotly-basic.min.js", PLOTLY_BASIC)]
)
def test_the_library_that_ships_is_the_one_that_was_released(name: str, released: str) -> None:
    script = Path("app/ui/static/vendor", name).read_bytes()
    assert hashlib.sha256(script).hexdigest() == released


@contextmanager
def signed_in(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=120) as browser:
        answer = browser.post("/ui/session", json={"key": f" {ADMIN_KEY} "}, headers=own(service))
        assert answer.status_code == 204
        yield browser


def test_the_cookie_is_for_this_site_alone(locked: Service) -> None:
    answer = locked.post("/ui/session", {"key": ADMIN_KEY}, headers=own(locked))
    told = answer.headers["Set-Cookie"].lower()
    assert told.startswith(COOKIE)
    assert "httponly" in told
    assert "samesite=strict" in told
    assert "secure" not in told
    proxied = {"Origin": "https://credence.example", "X-Forwarded-Host": "credence.example"}
    answer = locked.post("/ui/session", {"key": ADMIN_KEY}, headers=proxied)
    assert "; secure" in answer.headers["Set-Cookie"].lower()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},  # another port is the same site: its cookie comes along
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
    answer = answered(service.http.get("/ui/nowhere"), 404)
    assert answer.headers["Content-Type"].startswith("text/html")
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert answer.headers["X-Request-ID"] in answer.text
    assert service.http.get("/ui/datasets/ds_0").status_code == 404
    assert service.http.get("/nowhere").headers["Content-Type"] == "application/problem+json"


def test_a_key_of_scope_predict_finds_only_models(locked: Service) -> None:
    def found(key: str) -> str:
        return locked.http.get("/ui/search?text=price", headers=bearer(key)).text

    predicts, every = found(made(locked, Scope.PREDICT)), found(ADMIN_KEY)
    assert "/ui/models/price" in predicts
    for other in ("/ui/datasets/", "/ui/jobs/"):
        assert other not in predicts
        assert other in every


def test_a_key_for_predictions_is_led_to_what_it_opens(service: Service, tmp_path: Path) -> None:
    with serving(tmp_path / "empty", admin_key_file=key_file(tmp_path)) as guarded:
        _, key = Keys(guarded.context.database).create("predicts", Scope.PREDICT)
        cookie = {"Cookie": f"{COOKIE}={key}"}
        wait_until(lambda: guarded.http.get("/models", headers=cookie).status_code == 200)
        start = guarded.http.get("/", headers=cookie)
        assert (start.status_code, start.headers["Location"]) == (303, "/ui/models")
        for path, status in (("models", 200), ("predict", 200), ("train", 403), ("models/no", 404)):
            answer = guarded.http.get(f"/ui/{path}", headers=cookie)
            assert answer.status_code == status
            assert "/ui/train" not in answer.text.replace("next=/ui/train", "")
            assert ("/ui/sign-in?next=" in answer.text) is (status > 400)
    assert "/ui/sign-in" not in service.http.get("/ui/models/no").text  # where no key is asked for


DOCS = "https://docs.example.org/credence"
TEMPLATES = Path(__file__).parents[3] / "app" / "ui" / "templates"
LEARN = re.compile(r'\{\{ learn\("([^"]+)", "[^"]+"\) \}\}')
HELP = "/dashboard.html"
LINKING = ("/", "/ui/predict?model=price", "/ui/models/price/versions/1?tab=explain", "/ui/sign-in")


def test_links_lead_to_pages_and_headings_that_exist() -> None:
    links = {link for path in TEMPLATES.rglob("*.html") for link in LEARN.findall(path.read_text())}
    assert len(links) > 15
    for link in links:
        page, _, anchor = link.partition("#")
        found = anchors(Path("docs", page).with_suffix(".md"))
        assert not anchor or anchor in found, link


def test_with_an_address_they_lead_there_and_help_too(make_service: MakeService) -> None:
    service = make_service(docs_url=DOCS)
    for path in LINKING:
        shown = service.http.get(path, headers={"Accept": "text/html"}).text
        links = re.findall(r'href="(https?://[^"]*)"', shown)
        assert links
        assert all(link.startswith(f"{DOCS}/") for link in links)
        assert f'href="{DOCS}{HELP}"' in shown or path.endswith("sign-in")


COMMAND = re.compile(r"<code[^>]*>(credence .*?)</code>", re.DOTALL)
EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
PARTS = re.compile(r"<[^>]*>")


def test_every_command_in_a_template_is_one() -> None:
    """As people copy it."""
    pages = (EXPRESSION.sub("1", path.read_text()) for path in TEMPLATES.rglob("*.html"))
    found = {html.unescape(PARTS.sub("", one)) for page in pages for one in COMMAND.findall(page)}
    assert len(found) > 5
    for line in sorted(found):
        name, *words = shlex.split(line)
        done = command(*words, "--help")  # which also reads the words before it
        assert (name, done.exit_code) == ("credence", 0), line
