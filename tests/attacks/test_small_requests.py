"""Rows 3, 22 to 24: small requests that take minutes, gigabytes or the event loop."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import TypeAdapter
from starlette.datastructures import QueryParams

from app.job_submission import series_bytes
from app.serving import arrow_format
from models.artifact.files import read_model
from models.config import ForecastConfig, ModelConfig
from models.prediction.options import PredictOptions
from tests.app.cards import publish_all
from tests.app.running import Service, answered, serving
from tests.app.serving.wires import num_numbers
from tests.fuzz.bombs import repeated, stream

ROW = [1.0, "oak", True, "2026-01-05T00:00:00Z"]
HISTORY = {
    "quarter": [f"{2010 + i // 4}-{3 * (i % 4) + 1:02d}" for i in range(20)],
    "sales": [50.0 + i for i in range(20)],
}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("small") / "data"
    publish_all(directory)
    return directory


@pytest.fixture(scope="module")
def service(data_dir: Path) -> Iterator[Service]:
    with serving(data_dir) as running:
        yield running


def test_a_target_near_zero_draws_all_samples(service: Service) -> None:
    """Its square was outside float64: 500."""
    body = {"model": "price", "inputs": [ROW], "samples": 100, "target_mc_error": 1e-300}
    answer = service.post("/predict", body)
    assert (answer.status_code, answer.json()["samples"]) == (200, 100)


def test_lists_in_lists_are_refused(service: Service) -> None:
    """A thousand were read, and checked by a function that calls itself: 500."""
    for option in ("costs", "density"):
        path = f"/predict?model=price&{option}={'[' * 990 + ']' * 990}"
        answer = service.http.post(path, content="x\n1\n", headers={"Content-Type": "text/csv"})
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["path"] == f"/{option}"


def test_an_answer_with_many_next_tokens_is_refused(data_dir: Path) -> None:
    """They did not count: 60 kB of empty texts were answered with 106 MB."""
    with serving(data_dir, max_answer_bytes=2**20) as service:
        body = {"model": "lines", "inputs": [""] * 20_000, "samples": 1, "top": 100}
        answer = answered(service.post("/predict", body), 413)
        assert "CREDENCE_MAX_ANSWER_BYTES" in answer.json()["detail"]
        few = service.post("/predict", body | {"inputs": [""] * 20})
    assert few.status_code == 200
    assert len(few.content) < 2**20


LEVELS = [i / 17 for i in range(1, 17)]
SHOPS = {
    "shop": ["north"] * 28 + ["<b>south"] * 28,
    "day": [f"2025-03-{1 + i:02d}" for i in range(28)] * 2,
    "sold": [20.0 + i % 7 for i in range(28)] + [90.0 + i % 7 for i in range(28)],
}
GROUPS = {f"group {i}": ["north", "<b>south"] for i in range(50)}
ANSWERS: list[tuple[str, int, dict[str, Any]]] = [
    ("price", 3, {"intervals": LEVELS, "quantiles": LEVELS, "return_mc_errors": True}),
    ("price", 3, {"density": {"points": 64}, "return_mc_errors": True}),
    ("price", 3, {"explain": True}),
    ("price", 3, {"return_draws": True}),
    ("tree", 3, {"return_draws": True, "set_level": 0.9}),
    ("shops", 6, {"return_draws": True}),
    ("shops", 6, {"totals": {"groups": GROUPS}, "intervals": LEVELS}),
    ("shops", 6, {"totals": {"groups": GROUPS}, "return_mc_errors": True}),
    ("shops", 6, {"anomalies": 9}),
]
INPUTS: dict[str, Any] = {
    "price": [ROW] * 3,
    "tree": [{"x": 0.1, "y": 0.2, "image": [[0.0, 1.0], [1.0, 0.0]]}] * 3,
    "shops": SHOPS,
}


@pytest.mark.parametrize(("name", "rows", "options"), ANSWERS, ids=lambda one: str(one)[:40])
def test_an_answer_has_the_numbers_that_are_counted(
    service: Service, name: str, rows: int, options: dict[str, Any]
) -> None:
    """Sums, errors, contributions and paths of forecasts did not count for the limit."""
    body = {"model": name, "inputs": INPUTS[name], "samples": 40}
    plain = service.post("/predict", body).json()
    answer = answered(service.post("/predict", body | options))
    more = num_numbers(answer.json()) - num_numbers(plain)
    asked = TypeAdapter(PredictOptions).validate_python({"samples": 40} | options)
    model = read_model(service.context.registry.path(service.context.registry.get(name)))
    usual = model.values_per_row(model.resolve(PredictOptions(samples=40)))
    counted = rows * (model.values_per_row(model.resolve(asked)) - usual)
    assert counted / 2 < more < 2 * counted


def test_what_an_answer_takes_is_counted(service: Service) -> None:
    """Of 15 kB of rows: 41 s of intervals, or 80 MB of draws."""
    body = {"model": "price", "inputs": [ROW] * 1000, "samples": 10_000}
    for more, limit in (
        ({"intervals": LEVELS}, "CREDENCE_MAX_WORK"),
        ({"density": {"points": 512}}, "CREDENCE_MAX_WORK"),
        ({"return_draws": True, "samples": 4000}, "CREDENCE_MAX_ANSWER_BYTES"),
    ):
        answer = answered(service.post("/predict", body | more), 413)
        assert limit in answer.json()["detail"]


def test_series_that_a_request_reads_are_reserved(tmp_path: Path) -> None:
    """Whole columns were read in the API, whatever memory was free."""
    series = {"key": "shop", "time": "day"}
    given = ModelConfig(target="sold", task="forecasting", forecast=ForecastConfig(**series))
    with serving(tmp_path / "data") as service:
        context = service.context
        found, _ = context.datasets.add_columns("shops", SHOPS)
        counted = series_bytes(found, given)
        held = sum(
            each.nbytes + sum(map(sys.getsizeof, each.tolist() if each.dtype == object else ()))
            for each in context.datasets.columns(found.id).values()
        )
        assert counted / 2 < held < 2 * counted
        body = {"model": "later", "dataset": found.id, "target": "sold", "task": "forecasting"}
        free = context.memory.total - sum(context.memory.reserved().values())
        with context.memory.reserve("uploads", free - counted + 1):
            refused = service.post("/train", body | {"forecast": series})
        assert refused.status_code == 503, refused.text
        assert int(refused.headers["Retry-After"]) >= 1
        accepted = service.post("/train", body | {"forecast": series})
        assert accepted.status_code in {202, 422}, accepted.text


def test_what_cannot_be_cut_may_not_take_long(data_dir: Path) -> None:
    """A forecast of 833 bytes had the engine for 90 s, a text of 8 kB for 122 s."""
    with serving(data_dir, max_whole_seconds=1e-6) as service:
        forecast = {"model": "sales", "inputs": HISTORY, "samples": 1000}
        refused = answered(service.post("/predict", forecast), 413)
        assert "CREDENCE_MAX_WHOLE_SECONDS" in refused.json()["detail"]
    with serving(data_dir) as service:
        assert service.post("/predict", forecast).status_code == 200


def test_a_small_stream_is_as_large_as_its_rows() -> None:
    """A kilobyte was decoded on the event loop, and silenced it for 2 to 12 s."""
    for table in (
        repeated("x" * 1000, 20_000),  # a long level of many rows
        pa.table({"x": ["x" * 20_000_000]}),  # a long cell
        pa.table({"x": pa.nulls(1_000_000)}),  # nulls, which take no bytes
    ):
        body = stream(table, "zstd")
        assert len(body) < 10_000
        request = arrow_format.read_request(QueryParams("model=price"), body)
        decoded = arrow_format.decoded_bytes(body)
        assert decoded >= max(request.num_bytes, 8 * request.num_rows)


def test_large_streams_are_decoded_apart(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    read, threads = arrow_format.read_request, []

    def recorded(*arguments: Any) -> Any:
        threads.append(threading.current_thread().name)
        return read(*arguments)

    monkeypatch.setattr(arrow_format, "read_request", recorded)
    headers = {"Content-Type": arrow_format.MEDIA_TYPE}
    for table in (repeated("x" * 1000, 20_000), pa.table({"x": [1.0]})):
        body = stream(table, "zstd")
        answer = service.http.post("/predict?model=price", content=body, headers=headers)
        assert answer.status_code == 422, answer.text  # these are not its columns
    assert threads[0].startswith("large-work")
    assert not threads[1].startswith("large-work")
