"""Keys in front of a real service: what each opens, and when a change counts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.access.required_scopes import required
from app.errors import Unauthorized
from core.access.keys import Keys, Scope
from tests.app.conftest import MakeService
from tests.app.running import Service, answered, serving
from tests.waiting import wait_until

ADMIN_KEY = "a-key-of-somebodys-own-making"
PREDICT = {"model": "price", "inputs": [[1.0, "oak", True, None]], "samples": 10}
TRAIN = {"model": "new", "dataset": "ds_none", "target": "y"}


@contextmanager
def reading_keys_often() -> Iterator[None]:
    """Services that start meanwhile notice a new key at once, instead of within a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.access.key_ring.REFRESH_SECONDS", 0.05)
        yield


@pytest.fixture(scope="module", autouse=True)
def _often() -> Iterator[None]:
    with reading_keys_often():
        yield


@pytest.fixture(scope="module")
def locked(copied: Path) -> Iterator[Service]:
    """A service with the first key from a file."""
    with serving(copied, admin_key_file=key_file(copied.parent)) as service:
        yield service


def key_file(folder: Path) -> Path:
    path = folder / "admin-key"
    path.write_text(f"{ADMIN_KEY}\n")
    return path


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def predicts(service: Service, text: str) -> bool:
    return service.post("/predict", PREDICT, headers=bearer(text)).status_code == 200


def made(service: Service, scope: Scope) -> str:
    """A new key that the service has noticed."""
    _, text = Keys(service.context.database).create(scope.value, scope)
    wait_until_known(service, text)
    return text


def wait_until_known(service: Service, text: str) -> None:
    """Without a request, which would count for the key's limit."""

    def is_known() -> bool:
        try:
            service.app.state.key_ring.find(text.encode())
        except Unauthorized:
            return False
        return True

    wait_until(is_known)


def test_without_a_key_the_answer_says_how_to_give_one(locked: Service) -> None:
    answer = answered(locked.post("/predict", PREDICT), 401)
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="credence"'
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["request_id"] == answer.headers["X-Request-ID"]
    for scheme in ("Basic dXNlcjpwYXNzd29yZA==", "Bearer", "Bearer ,", ADMIN_KEY):
        answered(locked.post("/predict", PREDICT, headers={"Authorization": scheme}), 401)


def test_an_unknown_key_stands_nowhere(locked: Service, caplog: pytest.LogCaptureFixture) -> None:
    answer = locked.post("/predict", PREDICT, headers=bearer("cred_guessed-by-somebody"))
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
    locked.http.get("/models", headers=bearer(ADMIN_KEY))
    written = caplog.text
    assert "'status': 401" in written
    assert "guessed" not in answer.text + written
    assert ADMIN_KEY not in written


def test_the_key_from_the_file_opens_everything(locked: Service) -> None:
    assert predicts(locked, ADMIN_KEY)
    assert locked.post("/train", TRAIN, headers=bearer(ADMIN_KEY)).status_code == 422
    assert locked.http.get("/nowhere", headers=bearer(ADMIN_KEY)).status_code == 404
    lower_case = {"authorization": f"bearer {ADMIN_KEY}"}
    assert locked.http.get("/models", headers=lower_case).status_code == 200


def test_scopes_include_each_other_but_not_what_no_rule_names(locked: Service) -> None:
    predict, train = made(locked, Scope.PREDICT), made(locked, Scope.TRAIN)
    answer = answered(locked.post("/train", TRAIN, headers=bearer(predict)), 403)
    assert 'error="insufficient_scope", scope="train"' in answer.headers["WWW-Authenticate"]
    assert predict not in answer.text
    assert predicts(locked, train)
    assert locked.post("/train", TRAIN, headers=bearer(train)).status_code == 422
    assert locked.http.get("/nowhere", headers=bearer(train)).status_code == 403


def test_what_watches_the_service_needs_no_key(locked: Service) -> None:
    for path in ("/health/live", "/health/ready", "/metrics", "/docs", "/openapi.json",
                 "/v2/health/live", "/v2/health/ready/", "/docs/assets/favicon.png"):  # fmt: skip
        assert locked.http.get(path).status_code == 200, path


def test_a_new_key_opens_and_a_revoked_one_does_not(locked: Service) -> None:
    """Without a restart, and without a request that reads the keys."""
    keys = Keys(locked.context.database)
    key, text = keys.create("short", Scope.PREDICT)
    wait_until(lambda: predicts(locked, text))
    keys.revoke(key.id)
    wait_until(lambda: not predicts(locked, text))


def test_the_first_key_locks_an_open_service(
    make_service: MakeService,
) -> None:
    service = make_service()
    keys = Keys(service.context.database)
    assert service.post("/predict", PREDICT).status_code == 200
    key, text = keys.create("first", Scope.PREDICT)
    wait_until_known(service, text)
    assert service.post("/predict", PREDICT).status_code == 401
    assert predicts(service, text)
    keys.revoke(key.id)
    wait_until(lambda: not predicts(service, text))
    assert service.post("/predict", PREDICT).status_code == 401


def test_authentication_can_be_off(make_service: MakeService, tmp_path: Path) -> None:
    service = make_service(auth="off", admin_key_file=key_file(tmp_path))
    assert service.post("/predict", PREDICT).status_code == 200


def test_known_keys_go_on_while_the_database_is_away(
    make_service: MakeService, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = make_service(admin_key_file=key_file(tmp_path))
    text = made(service, Scope.PREDICT)
    assert predicts(service, text)  # the model is loaded
    database = service.context.settings.data_dir / "credence.db"
    service.context.database.dispose()
    for file in database.parent.glob("credence.db*"):
        file.rename(file.with_name(f"away-{file.name}"))
    database.mkdir()  # nothing can be opened there
    key_ring = service.app.state.key_ring
    wait_until(lambda: key_ring._is_failing)
    failed = key_ring._refreshes
    wait_until(lambda: key_ring._refreshes > failed + 1)
    assert service.http.get("/health/ready").json()["database"] != "ok"
    assert predicts(service, text)
    assert predicts(service, ADMIN_KEY)
    assert caplog.text.count("keys cannot be read") == 1


def test_every_route_has_a_rule(service: Service) -> None:
    """A route that no rule names is for `admin` alone: safe, but surely not what was meant."""
    paths = service.http.get("/openapi.json").json()["paths"]
    scopes: dict[Scope | None, set[str]] = {}
    for path, operations in paths.items():
        for method in map(str.upper, operations):
            scopes.setdefault(required(method, path), set()).add(f"{method} {path}")
    assert scopes[Scope.ADMIN] == {"GET /audit"}
    assert scopes[None] == {
        "GET /health/live", "GET /health/ready", "GET /metrics",
        "GET /v2/health/live", "GET /v2/health/ready",
    }  # fmt: skip
    assert {route for route in scopes[Scope.PREDICT] if " /v2" not in route} == {
        "POST /predict", "POST /feedback", "GET /models", "GET /models/{name}",
        "GET /models/{name}/feedback", "GET /models/{name}/sharing",
        "DELETE /predictions/{prediction_id}", "DELETE /feedback/{feedback_id}",
        "GET /models/{name}/versions/{version}",
    }  # fmt: skip


def test_what_no_rule_names_is_for_admin() -> None:
    for route in ("GET /modelsx", "POST /health/live", "TRACE /models", "GET //health/live"):
        assert required(*route.split(" ", 1)) is Scope.ADMIN


def test_a_card_tells_of_rows_and_is_not_for_who_may_only_predict(locked: Service) -> None:
    """A line's end after the path gets to the same route."""
    predict, train = made(locked, Scope.PREDICT), made(locked, Scope.TRAIN)
    for what in ("card", "archive"):
        path = f"/models/price/versions/1/{what}"
        for method, sent in (("GET", path), ("HEAD", path), ("GET", f"{path}%0A")):
            answered(locked.http.request(method, sent, headers=bearer(predict)), 403)
        assert locked.http.get(path, headers=bearer(train)).status_code == 200
    assert required("GET", "/models/training/card") is Scope.PREDICT  # a model of this name
    assert required("POST", "/predict/batch\n") is Scope.TRAIN
