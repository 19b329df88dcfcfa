"""What notebooks show of models and jobs."""

from html.parser import HTMLParser
from typing import Any

import pytest

from credence.client import Client
from credence.client.summaries import job_html, model_html
from credence.types import Version

EVIL = "<script>alert('x')</script>"

pytestmark = pytest.mark.stack


class Read(HTMLParser):
    """The texts, tags and links of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str | None] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name == "href"]

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def test_no_text_becomes_markup(client: Client, version: Version) -> None:
    hostile: Any = {**version, "target": EVIL, "aliases": [EVIL], "notes": [EVIL], "task": EVIL}
    hostile["baselines"] = [{"kind": EVIL, "metrics": {}, "seconds": 0.0, "rows": 1}]
    assert "script" not in Read(model_html(hostile, 'http://x"><script>')).tags
    job: Any = {**client.job(version["job"]), "status": "failed", "model": EVIL, "kind": EVIL}
    job["error"] = {"code": EVIL, "message": EVIL}
    page = Read(job_html(job, "http://x"))
    assert "script" not in page.tags
    assert EVIL in page.text
