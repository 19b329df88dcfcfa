"""What comes in: strict JSON, honest limits, problems that name the field."""

import gzip
import json
import socket
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from app.schemas.training import TrainRequest
from core.datasets.datasets import Datasets
from models.config import BBBConfig, LikelihoodConfig, SupportConfig
from tests.app.conftest import MakeService
from tests.app.running import Service

JSON = {"Content-Type": "application/json"}


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The problem document, after a check of what all of them have in common."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["status"] == status
    assert {"type", "title", "detail"} <= document.keys()
    assert document["request_id"] == answer.headers["x-request-id"]
    assert "Traceback" not in answer.text
    return document


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b'{"model": "price"} x',
        b'{"model": "a", "model": "b"}',
        b'{"model": "\\ud800"}',
        b"[" * 100_000,
        b'{"inputs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"samples": ' + b"9" * 10_000 + b"}",
        b'{"samples": 01}',
        b"{'model': 'price'}",
    ],
)
@pytest.mark.parametrize("path", ["/predict", "/train", "/models/price/evaluate"])
def test_what_is_not_json_is_a_400(http: httpx.Client, path: str, body: bytes) -> None:
    problem(http.post(path, content=body, headers=JSON), 400)


@pytest.mark.parametrize("body", [b"[]", b"null", b"3", b'"text"'])
@pytest.mark.parametrize("path", ["/predict", "/train", "/models/price/evaluate"])
def test_json_other_than_an_object_is_a_422(http: httpx.Client, path: str, body: bytes) -> None:
    problem(http.post(path, content=body, headers=JSON), 422)


def test_nan_and_overflow_are_refused_where_they_stand(http: httpx.Client) -> None:
    body = b'{"training": {"learning_rate": NaN}, "metadata": {"a": [1, 1e999]}, "model": "m"}'
    document = problem(http.post("/train", content=body, headers=JSON), 422)
    paths = [error["path"] for error in document["errors"]]
    assert paths == ["/training/learning_rate", "/metadata/a/1"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "image/png"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
)
def test_other_media_types_are_a_415(http: httpx.Client, headers: dict[str, str]) -> None:
    problem(http.post("/predict", content=b"{}", headers=headers), 415)


def test_a_json_suffix_and_no_content_type_are_json(http: httpx.Client) -> None:
    for headers in ({"Content-Type": "application/vnd.any+json; charset=UTF-8"}, {}):
        assert http.post("/predict", content=b"{}", headers=headers).status_code == 422


def test_a_problem_tells_each_field_once_and_never_a_value(http: httpx.Client) -> None:
    body = {
        "model": "m",
        "dataset": "d",
        "target": "t",
        "network": {"kind": "cnn", "hidden": [0, 5, "secret-value"]},
        "method": {"prior": {"kind": "gaussian", "sigma": -1}, "kl": {"weight": "secret-value"}},
        "training": {"split": {"bi": "x"}, "seed": True, "epochs": "5", "learning_rate": 0},
        "features": [{"name": "a", "type": "audio"}, 3],
        "extra": {"secret-value": 1},
    }
    document = problem(http.post("/train", json=body), 422)
    errors = {error["path"]: error["message"] for error in document["errors"]}
    assert errors == {
        "/network/hidden/0": "must be greater than or equal to 1",
        "/network/hidden/2": "must be a valid integer",
        "/method/prior/sigma": (
            "must be greater than or equal to 0.000001 or 'auto', 'per_input' or 'per_weight'"
        ),
        "/method/kl/weight": "must be 'uniform', 'blundell' or 'parameters' or a valid number",
        "/training/epochs": "must be a valid integer",
        "/training/seed": "must be a valid integer",
        "/training/learning_rate": "must be greater than 0",
        "/training/split/by": "required",
        "/training/split/time": "required",
        "/training/split/bi": "unknown field",
        "/features/0/type": "must be 'number', 'category', 'boolean', 'datetime', 'tensor' or "
        "'text'",
        "/features/1": "must be a valid string or an object",
        "/extra": "unknown field",
    }
    assert "secret-value" not in document["detail"]


def test_a_hundred_faults_are_enough(http: httpx.Client) -> None:
    """Neither the answer nor the time to make it grows with the number of wrong items."""
    body = {"model": "m", "dataset": "d", "target": "t", "features": [3] * 50_000}
    document = problem(http.post("/train", json=body, timeout=20), 422)
    assert len(document["errors"]) <= 100
    nans = b'{"metadata": [' + b"NaN," * 50_000 + b"NaN]}"
    assert len(problem(http.post("/train", content=nans, headers=JSON), 422)["errors"]) <= 100


def test_the_unknown_kind_of_a_union_is_answered_with_the_known_ones(http: httpx.Client) -> None:
    body = {"model": "m", "dataset": "d", "target": "t", "method": {"prior": {"kind": "flat"}}}
    errors = problem(http.post("/train", json=body), 422)["errors"]
    assert errors == [
        {"path": "/method/prior/kind", "message": "must be 'gaussian' or 'scale_mixture'"}
    ]


@pytest.mark.parametrize(
    ("fields", "path", "meant"),
    [
        ({"methd": {}}, "/methd", "method"),
        ({"training": {"epocs": 3}}, "/training/epocs", "epochs"),
        ({"training": {"Epochs": 3}}, "/training/Epochs", "epochs"),
        ({"network": {"kind": "cnn", "chanels": [3]}}, "/network/chanels", "channels"),
        ({"network": {"parts": [{}, {"membrs": 3}]}}, "/network/parts/1/membrs", "members"),
        ({"method": {"kind": "swag", "rnk": 20}}, "/method/rnk", "rank"),
        ({"method": {"prior": {"sgima": 1}}}, "/method/prior/sgima", "sigma"),
        ({"target": {"name": "t", "lowr": 0}}, "/target/lowr", "lower"),
        ({"target": ["t", {"name": "u", "lowr": 0}]}, "/target/1/lowr", "lower"),
        ({"task": "regresion"}, "/task", "regression"),
        ({"method": {"kind": "swga"}}, "/method/kind", "swag"),
        ({"likelihood": "mixtur"}, "/likelihood", "mixture"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_known_one(
    http: httpx.Client, fields: dict[str, Any], path: str, meant: str
) -> None:
    body = {"model": "m", "dataset": "d", "target": "t"} | fields
    document = problem(http.post("/train", json=body), 422)
    errors = {error["path"]: error["message"] for error in document["errors"]}
    assert errors[path].endswith(f"did you mean {meant!r}?")


def test_only_fields_of_the_kind_that_is_sent_are_proposed(http: httpx.Client) -> None:
    """`rank` is a field of swag alone; a field that is there already is not meant again."""
    base = {"model": "m", "dataset": "d", "target": "t"}
    for method in ({"kind": "map", "rnk": 20}, {"kind": "swag", "rank": 20, "ranks": 20}):
        (error,) = problem(http.post("/train", json=base | {"method": method}), 422)["errors"]
        assert error["message"] == "unknown field"


def test_unknown_and_repeated_query_parameters_are_named(http: httpx.Client) -> None:
    assert problem(http.get("/jobs?limmit=3"), 422)["errors"] == [
        {
            "path": "limmit",
            "message": "unknown parameter 'limmit': did you mean 'limit'?; "
            "known are cursor, limit, model, parent, status",
        }
    ]
    assert problem(http.get("/jobs?limit=3&limit=4"), 422)["errors"][0]["path"] == "limit"
    assert problem(http.get("/health/live?x=1"), 422)["errors"][0]["path"] == "x"


@pytest.mark.parametrize("path", ["/datasets", "/jobs", "/models", "/jobs/job_x/events"])
@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "limit=1.5", "cursor=x"])
def test_a_limit_or_cursor_without_sense_is_named(
    http: httpx.Client, path: str, query: str
) -> None:
    answer = http.get(f"{path}?{query}")
    assert problem(answer, 422)["errors"][0]["path"] == query.partition("=")[0]


def test_unknown_routes_and_methods_are_problems(http: httpx.Client) -> None:
    problem(http.get("/nothing/here"), 404)
    answer = http.put("/train")
    problem(answer, 405)
    assert answer.headers["allow"] == "POST"


def test_the_request_id_is_kept_if_it_is_printable_and_made_if_not(http: httpx.Client) -> None:
    kept = http.get("/health/live", headers={"X-Request-ID": "order 66/a"})
    assert kept.headers.get_list("x-request-id") == ["order 66/a"]
    for bad in ("x" * 129, "tab\there", "caf\u00e9".encode()):
        made = http.get("/health/live", headers={"X-Request-ID": bad})
        assert len(made.headers["x-request-id"]) == 32


def test_a_body_over_the_limit_is_refused_by_its_bytes(make_service: MakeService) -> None:
    service = make_service(max_body_bytes=2048)
    big = b'{"model": "' + b"x" * 4096 + b'"}'

    def chunks() -> Any:
        for start in range(0, len(big), 100):
            yield big[start : start + 100]

    for content in (big, chunks()):  # with Content-Length, and chunked without
        document = problem(service.http.post("/predict", content=content, headers=JSON), 413)
        assert "2048" in document["detail"]
        assert "CREDENCE_MAX_BODY_BYTES" in document["detail"]
    upload = {"Content-Type": "text/csv"}
    problem(service.http.post("/datasets?name=a", content=b"x\n" * 2000, headers=upload), 413)


def test_content_length_that_lies_harms_nobody(service: Service) -> None:
    """More bytes than declared are another request; fewer, and a hang-up, are no request."""
    host, port = service.url.removeprefix("http://").split(":")
    head = "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}Content-Length: 2\r\n\r\n{{}}garbage".encode())
        assert b" 400 " in connection.recv(4096).split(b"\r\n")[0]
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}Content-Length: -5\r\n\r\n{{}}".encode())
        assert b"400" in connection.recv(4096).split(b"\r\n")[0]
    assert service.http.get("/health/ready").status_code == 200


def test_gzip_is_inflated_for_data_sets_within_the_limit(make_service: MakeService) -> None:
    service = make_service(max_body_bytes=100_000)
    table = "a,b\n" + "\n".join(f"{i},{i * 2}" for i in range(100))
    headers = {"Content-Type": "text/csv", "Content-Encoding": "gzip"}

    def upload(body: bytes, **changed: str) -> httpx.Response:
        return service.http.post("/datasets?name=z", content=body, headers=headers | changed)

    half = len(table) // 2
    members = gzip.compress(table[:half].encode()) + gzip.compress(table[half:].encode())
    assert upload(gzip.compress(table.encode())).json()["rows"] == 100
    assert upload(members).status_code == 200, "two members are the same file"
    bomb = gzip.compress(b"0" * 50_000_000)
    assert len(bomb) < 100_000
    assert "CREDENCE_MAX_BODY_BYTES" in problem(upload(bomb), 413)["detail"]
    problem(upload(table.encode()), 400)
    problem(upload(gzip.compress(table.encode())[:-9]), 400)
    problem(upload(b""), 400)
    problem(upload(b"", **{"Content-Encoding": "br"}), 415)
    assert not list(service.context.scratch.path.glob("upload-*"))


def test_an_unforeseen_error_is_a_500_without_its_story(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service()
    path = service.context.registry.path(service.context.registry.get("price", 2))
    (path / "model.json").write_text(json.dumps({"secret": "story"}))
    body = {"model": "price", "inputs": [[1.0, "oak", True, None]]}
    document = problem(service.post("/predict", body), 500)
    assert "damaged" in document["detail"]

    def fail(*_: object) -> None:
        raise RuntimeError("secret story")

    monkeypatch.setattr(Datasets, "get", fail)
    answer = service.http.get("/datasets/x", headers={"X-Request-ID": "id-1"})
    assert problem(answer, 500)["request_id"] == "id-1"
    assert "secret" not in answer.text


def test_a_target_with_bounds_is_a_name_and_a_support() -> None:
    likelihood = {"kind": "mixture", "scale": "log"}
    body = {"model": "m", "dataset": "ds_1", "likelihood": likelihood}
    bounded = TrainRequest.model_validate(body | {"target": {"name": "y", "lower": 0}})
    config = bounded.config([], BBBConfig())
    assert (config.target, config.support) == ("y", SupportConfig(lower=0.0))
    assert config.likelihood == LikelihoodConfig(kind="mixture", scale="log")
    plain = TrainRequest.model_validate(body | {"target": "y"}).config([], BBBConfig())
    assert (plain.target, plain.support) == ("y", None)
    for wrong in ({"name": "y", "least": 0}, {"name": "y", "lower": "a"}, {"lower": 0}):
        with pytest.raises(ValidationError):
            TrainRequest.model_validate(body | {"target": wrong})
