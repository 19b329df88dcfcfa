"""Row 8: what a caller learns of others."""

import httpx
import pytest

from core.access.callers import Caller, View
from core.access.keys import Keys, Scope
from tests.app.running import publish, regression_columns, serving
from tests.app.test_keys import ADMIN_KEY, bearer, key_file
from tests.waiting import wait_until

SECRET = "annas-secret-plan"
ROW = {"model": SECRET, "inputs": [[0.5, "oak", True, None]]}


def test_the_page_of_the_system_tells_nothing_of_others(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("others")
    with serving(folder / "data", admin_key_file=key_file(folder)) as service:
        context = service.context
        hers = context.for_caller(Caller(View("anna", sees_all=False), "anna"))
        publish(hers, SECRET, regression_columns(), target="price")
        context.workers.beat("worker-of-the-house", "cpu", hers.registry.get(SECRET).created_at)
        keys = Keys(context.database)
        scopes = {"anna": Scope.TRAIN, "ben": Scope.TRAIN, "eve": Scope.PREDICT}
        made = {name: keys.create(name, scope, name)[1] for name, scope in scopes.items()}
        pages = {}
        for name, text in ({"admin": ADMIN_KEY} | made).items():
            with httpx.Client(base_url=service.url, headers=bearer(text), timeout=120) as client:
                wait_until(lambda client=client: client.get("/models").status_code == 200)
                if name in ("admin", "anna"):
                    assert client.post("/predict", json=ROW).status_code == 200
                pages[name] = client.get("/ui/system").text
    assert SECRET in pages["admin"]
    assert SECRET in pages["anna"]
    assert "worker-of-the-house" in pages["admin"]
    for name in ("ben", "eve"):
        for told in (SECRET, "worker-of-the-house", "jobs-queued", "× 200", 'id="latency"'):
            assert told not in pages[name], (name, told)
        assert "scope admin" in pages[name]
