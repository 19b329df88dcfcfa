"""Links of pages into the documentation: off by default, and to pages and headings that exist."""

import re
from pathlib import Path

from tests.app.conftest import MakeService

DOCS = "https://docs.example.org/credence"
TEMPLATES = Path("app/ui/templates")
LEARN = re.compile(r'\{\{ learn\("([^"]+)", "[^"]+"\) \}\}')
HELP = "/dashboard.html"
PAGES = ("/", "/ui/predict?model=price", "/ui/models/price/versions/1?tab=explain", "/ui/sign-in")


def headings(page: str) -> set[str]:
    """The anchors of a page's headings."""
    text = Path("docs", page.removesuffix(".html") + ".md").read_text()
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_links_lead_to_pages_and_headings_that_exist() -> None:
    links = {link for path in TEMPLATES.rglob("*.html") for link in LEARN.findall(path.read_text())}
    assert len(links) > 15
    for link in links:
        page, _, anchor = link.partition("#")
        found = headings(page)
        assert not anchor or anchor in found, link


def test_with_an_address_they_lead_there_and_help_too(make_service: MakeService) -> None:
    service = make_service(docs_url=DOCS)
    for path in PAGES:
        shown = service.http.get(path, headers={"Accept": "text/html"}).text
        links = re.findall(r'href="(https?://[^"]*)"', shown)
        assert links
        assert all(link.startswith(f"{DOCS}/") for link in links)
        assert f'href="{DOCS}{HELP}"' in shown or path.endswith("sign-in")
