"""Levels that the training data merged are merged in every row to predict; copies all stay."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.datasets.dataset import Dataset
from core.datasets.files.options import DatasetOptions
from core.datasets.understanding.fixes import ColumnFix
from models.config import FeatureConfig, MLPConfig, ModelConfig, TrainingConfig
from tests.app.conftest import MakeService
from tests.app.running import Service, publish_as
from tests.app.serving.test_predict_files import answer, send
from tests.app.test_archives import exported
from tests.app.test_archives import send as import_archive
from tests.app.test_batch import result, run
from tests.corpus.workbooks import xlsx

pytestmark = pytest.mark.process  # some readers run in a child

CSV = "text/csv"
STREAM = "application/vnd.apache.arrow.stream"
LEVELS = {"Muenich": "Munich", "Berln": "Berlin"}
PRICES = {"Munich": 500.0, "Berlin": 300.0, "Rome": 100.0}
WRITTEN = ["Muenich", "Berln", "muenich ", "Rome", "Muenich"]  # the last equals the first
MEANT = ["Munich", "Berlin", "Munich", "Rome", "Munich"]


def rows_of(cities: list[str]) -> list[dict[str, Any]]:
    return [{"city": city, "x": 1.5} for city in cities]


def csv_of(rows: list[dict[str, Any]]) -> bytes:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def parquet_of(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def workbook_of(rows: list[dict[str, Any]]) -> bytes:
    return xlsx({"May": [list(rows[0]), *(list(row.values()) for row in rows)]})()


FILES: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    CSV: csv_of,
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": workbook_of,
    "application/vnd.apache.parquet": parquet_of,
}


def stream_of(rows: list[dict[str, Any]]) -> bytes:
    table, sink = pa.Table.from_pylist(rows), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def prepared(service: Service, folder: Path, format_: str | None = None) -> Dataset:
    """Prices by city; two cities are misspelt, and 20 rows are copies."""
    rng = np.random.default_rng(0)
    lines = ["city,x,price,kind"]
    for i in range(400):
        city = ["Munich", "Berlin", "Rome"][i % 3]
        price = PRICES[city] + rng.normal()
        lines.append(f"{city},{rng.normal():.3f},{price:.2f},{'good' if i % 3 else 'bad'}")
    lines[7] = lines[7].replace("Munich", "Muenich").replace("bad", "badd")
    lines[8] = lines[8].replace("Berlin", "Berln")
    lines += lines[20:40]
    path = folder / "flats.csv"
    path.write_text("\n".join(lines) + "\n")
    added, _ = service.context.datasets.add("flats", CSV, path)
    city = ColumnFix(name="city", format=format_)
    kind = ColumnFix(name="kind", levels={"badd": "bad"})
    if format_:
        added, _ = service.context.datasets.change_columns(added.id, [city])
    return service.context.datasets.change_columns(
        added.id,
        [ColumnFix(name="city", levels=LEVELS), kind],
        options=DatasetOptions(unique_rows=True),
    )[0]


def publish(service: Service, dataset: Dataset, target: str) -> None:
    config = ModelConfig(
        target=target,
        network=MLPConfig(hidden=(8,)),
        training=TrainingConfig(epochs=3, fine_tune_epochs=1),
        pruning=(),
        features=(
            FeatureConfig(name="city", type="category"),
            FeatureConfig(name="x", type="number"),
        ),
    )
    publish_as(service.context, "flats", dataset, config)


@pytest.fixture
def own(make_service: MakeService, tmp_path: Path) -> Service:
    service = make_service()
    dataset = prepared(service, tmp_path)
    assert (dataset.rows, dataset.reading.repeated_rows) == (400, 20)
    publish(service, dataset, "price")
    return service


def predicted(service: Service, inputs: Any) -> dict[str, Any]:
    return answer(service.post("/predict", {"model": "flats", "inputs": inputs}))


def feed(service: Service, rows: list[dict[str, Any]], truth: str) -> dict[str, Any]:
    found = service.http.post(
        "/feedback",
        content=csv_of(rows),
        headers={"Content-Type": CSV},
        params={"model": "flats", "truth": truth},
    )
    assert found.status_code == 201, found.text
    return dict(found.json())


def test_every_way_merges_levels_and_keeps_all_rows(own: Service, tmp_path: Path) -> None:
    expected = predicted(own, rows_of(MEANT))
    assert expected["out_of_distribution"] == [False] * 5
    mean = pytest.approx(expected["mean"])
    written = rows_of(WRITTEN)
    found = predicted(own, written)
    assert (found["mean"], found["out_of_distribution"]) == (mean, [False] * 5)
    stream = answer(send(own.http, stream_of(written), STREAM, "application/json", model="flats"))
    assert stream["mean"] == mean
    for type_, to_file in FILES.items():
        sent = answer(send(own.http, to_file(written), type_, model="flats"))
        assert sent["mean"] == mean, type_
        assert sent.get("notes", []) == [], type_

    true = [
        row | {"price": price}
        for row, price in zip(written, [500, 300, 500, 100, 500], strict=True)
    ]
    told = feed(own, true, "price")
    assert told["rows"] == 5, "the copy counts"

    path = tmp_path / "rows.csv"
    path.write_bytes(csv_of(written))
    dataset, _ = own.context.datasets.add("rows", CSV, path)  # read on its own
    assert dataset.rows == 5
    job = own.post("/predict/batch", {"model": "flats", "dataset": dataset.id}).json()
    run(own, job)
    assert result(own, job).column("mean").to_pylist() == mean


def test_a_file_like_the_data_set_has_its_levels_and_all_its_rows(own: Service) -> None:
    for like in ("flats", own.context.datasets.list().data[0].id):
        sent = own.http.post(
            "/datasets",
            params={"name": "next", "like": like},
            headers={"Content-Type": CSV},
            content=csv_of(rows_of(WRITTEN)),
        )
        assert sent.json()["rows"] == 5
        (city, _) = sent.json()["columns"]
        assert city["levels"] == ["Munich", "Berlin", "Rome"]
        assert city["reading"]["levels"] == LEVELS


def test_an_exact_column_merges_what_is_written_so(
    make_service: MakeService, tmp_path: Path
) -> None:
    service = make_service()
    publish(service, prepared(service, tmp_path, "exact"), "price")
    mean = predicted(service, rows_of(["Munich", "muenich "]))["mean"]
    for rows in (["Muenich", "muenich "], ["Munich", "muenich "]):
        found = predicted(service, rows_of(rows))
        assert found["mean"] == pytest.approx(mean)
        assert found["out_of_distribution"] == [False, True]
        sent = answer(send(service.http, csv_of(rows_of(rows)), CSV, model="flats"))
        assert sent["mean"] == pytest.approx(mean)


def test_classes_that_were_merged_are_true_values(
    make_service: MakeService, tmp_path: Path
) -> None:
    service = make_service()
    publish(service, prepared(service, tmp_path), "kind")
    assert sorted(service.http.get("/models/flats/versions/1").json()["classes"]) == ["bad", "good"]
    stored = service.post(
        "/predict", {"model": "flats", "inputs": rows_of(["Munich", "Rome"]), "store": True}
    ).json()
    body = {"prediction": stored["id"], "truth": ["badd", "good"]}
    assert service.post("/feedback", body).status_code == 201
    rows = [
        row | {"kind": kind} for row, kind in zip(rows_of(MEANT[:2]), ["badd", "good"], strict=True)
    ]
    assert feed(service, rows, "kind")["rows"] == 2


def test_an_exported_model_merges_the_same_levels(own: Service, make_service: MakeService) -> None:
    other = make_service()
    imported = import_archive(other, exported(own, "flats"), "flats")
    assert imported.status_code == 201, imported.text
    expected = predicted(own, rows_of(MEANT))["mean"]
    assert predicted(other, rows_of(WRITTEN))["mean"] == pytest.approx(expected, rel=1e-5)
