"""What notebooks show of models and jobs, and the bar that they update."""

import json
import sys
from html.parser import HTMLParser
from types import ModuleType
from typing import Any

import pytest

from credence import progress
from credence.client import Client
from credence.client.summaries import job_html, model_html
from credence.types import Version

EVIL = "<script>alert('x')</script>"


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


def test_a_model_shows_its_scores_beside_simple_methods(client: Client, version: Version) -> None:
    page = Read(client.model("small", 1)._repr_html_())
    assert page.links == [f"{client.url}/ui/models/small/versions/1"]
    assert f"{version['metrics']['rmse']:.4g} ± " in page.text
    assert "this model" in page.text
    assert "regression of 'y' from 3 features" in page.text


def test_a_job_shows_its_state_and_stays_the_document(client: Client, version: Version) -> None:
    job: Any = client.job(version["job"])
    page = Read(job._repr_html_())
    assert page.links == [f"{client.url}/ui/jobs/{version['job']}"]
    assert "succeeded" in page.text
    assert json.loads(json.dumps(job)) == job
    assert isinstance(job, dict)


def test_no_text_becomes_markup(client: Client, version: Version) -> None:
    hostile: Any = {**version, "target": EVIL, "aliases": [EVIL], "notes": [EVIL], "task": EVIL}
    hostile["baselines"] = [{"kind": EVIL, "metrics": {}, "seconds": 0.0, "rows": 1}]
    assert "script" not in Read(model_html(hostile, 'http://x"><script>')).tags
    job: Any = {**client.job(version["job"]), "status": "failed", "model": EVIL, "kind": EVIL}
    job["error"] = {"code": EVIL, "message": EVIL}
    page = Read(job_html(job, "http://x"))
    assert "script" not in page.tags
    assert EVIL in page.text


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a cell has shown: a stand-in for IPython, which the tests do without."""
    shown: list[str] = []

    class Handle:
        def update(self, page: str) -> None:
            shown.append(page)

    def display(page: str, display_id: bool) -> Handle:
        shown.append(f"first {page}")
        return Handle()

    module: Any = ModuleType("IPython.display")
    module.HTML, module.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(progress, "is_notebook", lambda: True)
    return shown


def test_a_notebook_has_one_bar_that_follows_the_job(
    client: Client, version: Version, cell: list[str]
) -> None:
    with Client(client.url, progress=True) as noted:
        noted.wait(version["job"])
    assert [page.startswith("first") for page in cell] == [True]
    assert "100% succeeded" in cell[0]
    with progress.rows_bar(4) as show:
        show(1)
        show(1)
    assert "25% predicting · 1 of 4 rows" in cell[-2]
    assert "50% predicting · 2 of 4 rows" in cell[-1]
    assert not cell[-1].startswith("first")


def test_a_client_without_progress_shows_nothing(
    client: Client, version: Version, cell: list[str]
) -> None:
    with Client(client.url, progress=False) as silent:
        silent.wait(version["job"])
    assert cell == []
