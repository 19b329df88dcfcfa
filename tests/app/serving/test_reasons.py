"""Why rows are unlike training, on every wire."""

import csv
import io
import json
from typing import Any

import httpx
import pyarrow as pa
import pytest

from app.serving.arrow_format import MEDIA_TYPE
from core.inputs.records import decode
from core.predictions.prediction_table import to_table
from models.prediction.options import PredictOptions
from tests.app.running import Service
from tests.app.serving.test_abstaining import DAY, infer, loaded

USUAL = [0.1, "oak", True, DAY]
ROWS = [USUAL, [80.0, "oak", True, DAY], [0.1, "teak", True, DAY], [0.1, "ash", True, None]]
EXPECTED = [None, ("size", "out_of_range", 80), ("wood", "unseen_level", "teak"),
            ("day", "missing_unseen", None)]  # fmt: skip


def ask(http: httpx.Client, rows: list[Any], **headers: str) -> httpx.Response:
    answer = http.post("/predict", json={"model": "price", "inputs": rows}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


def test_json_names_the_column_first(http: httpx.Client) -> None:
    answer = ask(http, ROWS).json()
    assert answer["out_of_distribution"][1:] == [True, True, True]
    for found, expected in zip(answer["reasons"][1:], EXPECTED[1:], strict=True):
        first = found[0]
        assert (first["column"], first["code"], first["value"]) == expected
    size, wood, day = (found[0] for found in answer["reasons"][1:])
    assert -2 <= size["seen"]["lowest"] < size["seen"]["highest"] <= 2
    assert (sorted(wood["seen"]["levels"]), wood["seen"]["count"]) == (["ash", "oak"], 2)
    assert day["seen"] == {"lowest": "2026-01-01", "highest": "2026-01-28"}
    assert wood["text"].startswith("wood is teak; training saw ")
    for flagged, found in zip(answer["out_of_distribution"], answer["reasons"], strict=True):
        assert flagged == bool(found)


def test_a_row_alone_has_the_reasons_that_it_has_among_others(http: httpx.Client) -> None:
    together = ask(http, ROWS).json()["reasons"]
    assert [ask(http, [row]).json()["reasons"][0] for row in ROWS] == together


def test_arrow_has_lists_of_structs_and_csv_has_words(http: httpx.Client) -> None:
    expected = ask(http, ROWS).json()["reasons"]
    body = ask(http, ROWS, Accept=MEDIA_TYPE).content
    found = pa.ipc.open_stream(io.BytesIO(body)).read_all()["reasons"].to_pylist()
    texts = [[one["text"] for one in row] for row in expected]
    assert [[one["text"] for one in row] for row in found] == texts
    assert [one["value"] for one in found[2]][:1] == ["teak"]
    lines = list(csv.DictReader(io.StringIO(ask(http, ROWS, Accept="text/csv").text)))
    assert [line["reasons"] for line in lines] == ["; ".join(row) for row in texts]


def test_the_protocol_has_them_as_json_on_request(http: httpx.Client) -> None:
    outputs = infer(http, ["reasons", "out_of_distribution"]).json()["outputs"]
    by_name = {output["name"]: output for output in outputs}
    assert by_name["reasons"]["datatype"] == "BYTES"
    reasons = [json.loads(text) for text in by_name["reasons"]["data"]]
    assert reasons[2][0]["column"] == "size"  # 80 in the rows of that request
    assert [bool(row) for row in reasons] == by_name["out_of_distribution"]["data"]
    assert "reasons" not in [one["name"] for one in infer(http, None).json()["outputs"]]


def test_flagged_rows_are_counted_by_their_first_reason(
    http: httpx.Client, service: Service
) -> None:
    def counted() -> float:
        name = "credence_predict_reasons_total"
        return float(service.metric(name, code="unseen_level", model="price"))

    ask(http, ROWS)
    before = counted()
    ask(http, [ROWS[2]] * 3)
    assert counted() == before + 3


@pytest.mark.parametrize("rows", [1, 2])
def test_blocks_of_a_batch_job_have_the_reasons_of_a_request(
    http: httpx.Client, service: Service, rows: int
) -> None:
    """Of any size, with one type."""
    model = loaded(service, "price")

    columns = decode(ROWS, model.inputs)
    options = model.resolve(PredictOptions())
    tables = []
    for start in range(0, len(ROWS), rows):
        some = {name: values[start : start + rows] for name, values in columns.items()}
        prediction = model.predict_rows(model.read(some, None, options), options)
        tables.append(to_table(model.with_reasons(prediction, some)))
    found = pa.concat_tables(tables)["reasons"].to_pylist()
    expected = ask(http, ROWS).json()["reasons"]
    assert [[one["text"] for one in row] for row in found] == [
        [one["text"] for one in row] for row in expected
    ]
