"""What notebooks show of models and jobs."""

from html import unescape
from typing import Any

import pytest

from credence.client import Client
from credence.client.summaries import job_html, model_html
from credence.types import Version

EVIL = "<script>alert('x')</script>"

pytestmark = pytest.mark.stack


def test_no_text_becomes_markup(client: Client, version: Version) -> None:
    hostile: Any = {**version, "target": EVIL, "aliases": [EVIL], "notes": [EVIL], "task": EVIL}
    hostile["baselines"] = [{"kind": EVIL, "metrics": {}, "seconds": 0.0, "rows": 1}]
    assert "<script" not in model_html(hostile, 'http://x"><script>')
    job: Any = {**client.job(version["job"]), "status": "failed", "model": EVIL, "kind": EVIL}
    job["error"] = {"code": EVIL, "message": EVIL}
    page = job_html(job, "http://x")
    assert "<script" not in page
    assert EVIL in unescape(page)
