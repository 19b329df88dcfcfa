"""Keys in front of a real service: what each opens, and when a change counts."""

import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tritonclient.http as triton

from app.access.key_ring import KeyRing
from app.access.required_scopes import required
from core.access.keys import Keys, Scope
from core.exceptions import InvalidSetting
from core.settings import load_settings
from tests.app.conftest import MakeService
from tests.app.running import Service, serving

ADMIN_KEY = "a-key-of-somebodys-own-making"
PREDICT = {"model": "price", "inputs": [[1.0, "oak", True, None]], "samples": 10}
TRAIN = {"model": "new", "dataset": "ds_none", "target": "y"}


@pytest.fixture(scope="module")
def locked(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with the first key from a file."""
    folder = tmp_path_factory.mktemp("locked")
    shutil.copytree(trained, folder / "data")
    with serving(folder / "data", admin_key_file=key_file(folder)) as service:
        yield service


@pytest.fixture
def keys(locked: Service) -> Keys:
    return Keys(locked.context.database)


def key_file(folder: Path) -> Path:
    path = folder / "admin-key"
    path.write_text(f"{ADMIN_KEY}\n")
    return path


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Within the five seconds that a revoked key may go on working."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def predicts(service: Service, text: str) -> bool:
    return service.post("/predict", PREDICT, headers=bearer(text)).status_code == 200


def made(service: Service, scope: Scope) -> str:
    """A new key that the service has noticed."""
    _, text = Keys(service.context.database).create(scope.value, scope)
    wait_until(lambda: predicts(service, text))
    return text


def test_without_a_key_the_answer_says_how_to_give_one(locked: Service) -> None:
    answer = locked.post("/predict", PREDICT)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="credence"'
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["title"], problem["status"]) == ("Unauthorized", 401)
    assert "Authorization: Bearer KEY" in problem["detail"]
    assert problem["request_id"] == answer.headers["X-Request-ID"]


@pytest.mark.parametrize("scheme", ["Basic dXNlcjpwYXNzd29yZA==", "Bearer", "Bearer ,", ADMIN_KEY])
def test_only_a_bearer_key_is_one(locked: Service, scheme: str) -> None:
    answer = locked.post("/predict", PREDICT, headers={"Authorization": scheme})
    assert answer.status_code == 401


def test_an_unknown_key_is_refused_and_stands_nowhere(
    locked: Service, caplog: pytest.LogCaptureFixture
) -> None:
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


def test_a_scope_that_is_too_narrow_is_named(locked: Service) -> None:
    text = made(locked, Scope.PREDICT)
    answer = locked.post("/train", TRAIN, headers=bearer(text))
    assert answer.status_code == 403
    assert answer.json()["detail"] == (
        "this needs a key of scope train; the scope of this key is predict"
    )
    assert 'error="insufficient_scope", scope="train"' in answer.headers["WWW-Authenticate"]
    assert text not in answer.text


def test_train_includes_predict_but_not_what_no_rule_names(locked: Service) -> None:
    text = made(locked, Scope.TRAIN)
    assert locked.post("/train", TRAIN, headers=bearer(text)).status_code == 422
    assert locked.http.get("/nowhere", headers=bearer(text)).status_code == 403


def test_what_watches_the_service_needs_no_key(locked: Service) -> None:
    for path in ("/health/live", "/health/ready", "/metrics", "/docs", "/openapi.json",
                 "/v2/health/live", "/v2/health/ready/", "/docs/assets/favicon.png"):  # fmt: skip
        assert locked.http.get(path).status_code == 200, path


def test_a_revoked_key_opens_nothing_within_seconds(locked: Service, keys: Keys) -> None:
    key, text = keys.create("short", Scope.PREDICT)
    wait_until(lambda: predicts(locked, text))
    keys.revoke(key.id)
    wait_until(lambda: not predicts(locked, text))


def test_an_open_service_is_locked_by_its_first_key_and_stays_so(
    make_service: MakeService,
) -> None:
    service = make_service()
    keys = Keys(service.context.database)
    assert service.post("/predict", PREDICT).status_code == 200
    key, text = keys.create("first", Scope.PREDICT)
    wait_until(lambda: service.post("/predict", PREDICT).status_code == 401)
    assert predicts(service, text)
    keys.revoke(key.id)
    wait_until(lambda: not predicts(service, text))
    assert service.post("/predict", PREDICT).status_code == 401


def test_the_use_of_a_key_is_noted_now_and_then(locked: Service, keys: Keys) -> None:
    made(locked, Scope.PREDICT)
    predicts(locked, ADMIN_KEY)  # which has no row
    locked.app.state.key_ring._touch(keys)
    *_, key = keys.list()
    assert key.last_used_at is not None


def test_authentication_can_be_off(make_service: MakeService, tmp_path: Path) -> None:
    service = make_service(auth="off", admin_key_file=key_file(tmp_path))
    assert service.post("/predict", PREDICT).status_code == 200


def test_known_keys_go_on_while_the_database_is_away(
    make_service: MakeService, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = make_service(admin_key_file=key_file(tmp_path))
    text = made(service, Scope.PREDICT)
    database = service.context.settings.data_dir / "credence.db"
    service.context.database.dispose()
    for file in database.parent.glob("credence.db*"):
        file.rename(file.with_name(f"away-{file.name}"))
    database.mkdir()  # nothing can be opened there
    time.sleep(2.5)  # the keys were to be read twice meanwhile
    state = service.http.get("/health/ready").json()["database"]
    assert state == "the database does not answer now"
    assert predicts(service, text)
    assert predicts(service, ADMIN_KEY)
    assert caplog.text.count("keys cannot be read") == 1


def test_clients_of_the_inference_protocol_send_keys(locked: Service) -> None:
    refused = locked.http.get("/v2/models/price")
    assert refused.status_code == 401
    assert refused.json()["error"] == refused.json()["detail"]
    with triton.InferenceServerClient(locked.url.removeprefix("http://")) as client:
        assert client.is_server_live()
        assert client.is_model_ready("price", headers=bearer(ADMIN_KEY))


def test_every_route_has_a_rule(service: Service) -> None:
    """A route that no rule names is for `admin` alone: safe, but surely not what was meant."""
    document = service.http.get("/openapi.json").json()
    scopes = {
        f"{method.upper()} {path}": required(method.upper(), path)
        for path, operations in document["paths"].items()
        for method in operations
    }
    assert [route for route, scope in scopes.items() if scope is Scope.ADMIN] == ["GET /audit"]
    assert {route for route, scope in scopes.items() if scope is None} == {
        "GET /health/live", "GET /health/ready", "GET /metrics",
        "GET /v2/health/live", "GET /v2/health/ready",
    }  # fmt: skip
    assert {route for route, scope in scopes.items() if scope is Scope.PREDICT} == {
        "POST /predict", "POST /feedback", "GET /models", "GET /models/{name}",
        "GET /models/{name}/feedback", "GET /models/{name}/sharing",
        "DELETE /predictions/{prediction_id}", "DELETE /feedback/{feedback_id}",
        "GET /models/{name}/versions/{version}",
        "GET /v2",
        "GET /v2/models/{model}", "GET /v2/models/{model}/ready",
        "GET /v2/models/{model}/versions/{version}",
        "GET /v2/models/{model}/versions/{version}/ready",
        "POST /v2/models/{model}/infer", "POST /v2/models/{model}/versions/{version}/infer",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/"), ("GET", "/modelsx"), ("POST", "/predictions"), ("POST", "/health/live"),
        ("DELETE", "/metrics"), ("GET", "/keys"), ("TRACE", "/models"), ("OPTIONS", "/predict"),
        ("GET", "//health/live"), ("GET", ""),
    ],
)  # fmt: skip
def test_what_no_rule_names_is_for_admin(method: str, path: str) -> None:
    assert required(method, path) is Scope.ADMIN


@pytest.mark.parametrize("what", ["card", "archive"])
def test_a_card_tells_of_rows_and_is_not_for_who_may_only_predict(
    locked: Service, what: str
) -> None:
    """A line's end after the path gets to the same route."""
    predict, train = made(locked, Scope.PREDICT), made(locked, Scope.TRAIN)
    path = f"/models/price/versions/1/{what}"
    for method in ("GET", "HEAD"):
        for sent in (path, f"{path}%0A"):
            answer = locked.http.request(method, sent, headers=bearer(predict))
            assert answer.status_code == 403, (method, sent)
    assert locked.http.get(path, headers=bearer(train)).status_code == 200
    assert required("GET", "/models/training/card") is Scope.PREDICT  # a model of this name
    assert required("POST", "/predict/batch\n") is Scope.TRAIN


def test_openapi_tells_the_scheme_and_what_is_open(service: Service) -> None:
    document = service.http.get("/openapi.json").json()
    assert document["components"]["securitySchemes"]["key"] == {
        "type": "http", "scheme": "bearer", "description": "made by `credence keys create`",
    }  # fmt: skip
    predict = document["paths"]["/predict"]["post"]
    assert predict["security"] == [{"key": []}]
    assert {"401", "403"} <= predict["responses"].keys()
    assert "`predict`" in predict["responses"]["403"]["description"]
    assert "security" not in document["paths"]["/health/live"]["get"]
    assert "401" not in document["paths"]["/metrics"]["get"]["responses"]


def test_a_file_without_a_key_is_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="CREDENCE_ADMIN_KEY_FILE"):
        KeyRing(load_settings(data_dir=tmp_path, admin_key_file=tmp_path / "none"), "127.0.0.1")


def test_admitting_a_prediction_costs_microseconds(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path, admin_key_file=key_file(tmp_path))
    ring = KeyRing(settings, "127.0.0.1")
    headers = [(b"host", b"localhost"), (b"accept", b"*/*"), (b"user-agent", b"test")]
    headers += [(b"content-type", b"application/json"), (b"content-length", b"99")]
    headers += [(b"authorization", f"Bearer {ADMIN_KEY}".encode())]
    connection = {"method": "POST", "path": "/predict", "headers": headers}
    times = []
    for _ in range(50):
        started = time.perf_counter()
        for _ in range(100):
            ring.admit(connection)
        times.append((time.perf_counter() - started) / 100)
    print(f"{1e6 * statistics.median(times):.1f} µs")  # noqa: T201
    assert min(times) < 20e-6
