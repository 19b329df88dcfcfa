"""Language models over HTTP: a text becomes a data set, a job, a version, answers and scores."""

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from tests.app.running import Service, answered, serving
from tests.app.serving.wires import done, send_arrow, tensors

ARROW = "application/vnd.apache.arrow.stream"
REQUEST = {
    "model": "lines",
    "target": "text",
    "task": "language_model",
    "network": {"kind": "gru", "hidden": [6]},
    "training": {"epochs": 2, "batch_size": 4},
    "pruning": [0.5],
    "language": {"steps": 6},
}


def _lines(count: int) -> bytes:
    random = np.random.default_rng(0)
    lines = [" ".join(random.choice(["to", "be", "or", "not"], 5)) for _ in range(count)]
    return "\n".join(lines).encode()


def _upload(service: Service, content: bytes) -> str:
    answer = service.http.post(
        "/datasets",
        params={"name": "lines"},
        content=content,
        headers={"Content-Type": "text/plain"},
    )
    return str(answer.json()["id"])


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a language model."""
    with serving(tmp_path_factory.mktemp("language") / "data") as running:
        dataset = _upload(running, _lines(60))
        done(running, running.post("/train", {**REQUEST, "dataset": dataset}))
        yield running


def _predict(service: Service, **asked: Any) -> httpx.Response:
    return service.post("/predict", {"model": "lines", "inputs": ["to be"], **asked})


def _paths(answer: httpx.Response) -> list[str]:
    return [error["path"] for error in answer.json()["errors"]]


def test_a_version_tells_its_perplexities(lines: Service) -> None:
    version = lines.http.get("/models/lines/versions/1").json()
    assert (version["task"], version["vocabulary_size"]) == ("language_model", 6)
    for variant in version["variants"]:
        assert 1 < variant["metrics"]["perplexity"] < 10
        assert 1 < variant["metrics"]["perplexity_posterior_mean"] < 10
    assert version["variants"][1]["prune"] == 0.5


def test_texts_have_likelihoods_and_next_tokens(lines: Service) -> None:
    texts = ["to be or not to be", "", "whether 'tis nobler"]
    answer = _predict(lines, inputs=texts, samples=30, top=4).json()
    lengths = [7, 1, 4]
    for row, length in enumerate(lengths):
        values = answer["token_log_likelihoods"][row]
        assert len(values) == length
        assert sum(values) == pytest.approx(answer["log_likelihood"][row])
        expected = np.exp(-answer["log_likelihood"][row] / length)
        assert answer["perplexity"][row] == pytest.approx(expected)
        told = [found["probability"] for found in answer["next_tokens"][row]]
        assert len(told) == 4
        assert told == sorted(told, reverse=True)
        assert sum(told) <= 1
        parts = {name: values[row] for name, values in answer["entropy"].items()}
        assert parts["total"] == pytest.approx(parts["aleatoric"] + parts["epistemic"])
    assert (answer["samples"], answer["sampler"]) == (30, "monte_carlo")


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"inputs": {"text": ["a"]}}, "/inputs"),
        ({"inputs": ["a", 3]}, "/inputs/1"),
        ({"inputs": [{"text": "a"}]}, "/inputs/0"),
        ({"top": 101}, "/top"),
        ({"sampler": "sobol"}, "/sampler"),
        ({"return_draws": True}, "/return_draws"),
    ],
)
def test_what_cannot_be_asked_is_named(lines: Service, asked: dict[str, Any], path: str) -> None:
    answer = answered(_predict(lines, **asked), 422)
    assert _paths(answer) == [path]


def test_formats_for_rows_refuse_texts(lines: Service) -> None:
    as_arrow = send_arrow(lines.http, {"text": ["to be"]}, model="lines")
    for_arrow = lines.http.post(
        "/predict", json={"model": "lines", "inputs": ["to"]}, headers={"Accept": ARROW}
    )
    by_protocol = lines.post("/v2/models/lines/infer", {"inputs": tensors({"text": ["to"]})})
    described = lines.http.get("/v2/models/lines")
    batch = lines.post("/predict/batch", {"model": "lines", "dataset": _upload(lines, b"to be")})
    for answer in (as_arrow, for_arrow, by_protocol, described, batch):
        assert answer.status_code == 422, answer.text


def test_another_text_is_scored(lines: Service) -> None:
    dataset = _upload(lines, _lines(20))
    body = {"dataset": dataset, "prune": 0.5}
    metrics = done(lines, lines.post("/models/lines/evaluate", body))["metrics"]
    assert metrics["rows"] == 20
    assert 110 <= metrics["tokens"] <= 120  # 20 lines of 5 words and an end, in ten streams
    assert 1 < metrics["perplexity"] < 10


def test_a_text_is_not_stored_and_takes_no_labels(lines: Service) -> None:
    body = {"model": "lines", "inputs": ["to be"]}
    stored = lines.post("/predict", body | {"store": True})
    assert (stored.status_code, stored.json()["errors"][0]["path"]) == (422, "/store")
    told = lines.post("/feedback", body | {"truth": ["or"]})
    assert (told.status_code, told.json()["errors"][0]["path"]) == (422, "/model")
