"""What tests of predictions share: bodies in Arrow, Parquet and tensors, and jobs carried out."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyarrow import parquet

from app.serving.arrow_format import MEDIA_TYPE
from tests.app.running import Service, answered
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

PARQUET = "application/vnd.apache.parquet"
DATATYPES = {bool: "BOOL", float: "FP64", int: "FP64", str: "BYTES"}

Columns = Mapping[str, Sequence[Any]]


def as_arrow(columns: Columns | pa.Table) -> bytes:
    """An Arrow stream."""
    table, sink = columns if isinstance(columns, pa.Table) else pa.table(columns), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def send_arrow(
    http: httpx.Client, columns: Columns | pa.Table, accept: str = MEDIA_TYPE, **query: Any
) -> httpx.Response:
    """A prediction whose rows, and by default its answer, are in Arrow."""
    headers = {"Content-Type": MEDIA_TYPE, "Accept": accept}
    return http.post("/predict", params=query, content=as_arrow(columns), headers=headers)


def table_of(answer: httpx.Response) -> pa.Table:
    assert answer.status_code == 200, answer.text
    return pa.ipc.open_stream(answer.content).read_all()


def tensors(columns: Columns) -> list[dict[str, Any]]:
    """The inputs of the Open Inference Protocol, in JSON."""
    return [
        {
            "name": name,
            "shape": [len(values)],
            "datatype": DATATYPES[type(next(v for v in values if v is not None))],
            "data": list(values),
        }
        for name, values in columns.items()
    ]


def outputs_of(answer: httpx.Response) -> dict[str, dict[str, Any]]:
    """The outputs of the Open Inference Protocol by name."""
    assert answer.status_code == 200, answer.text
    return {output["name"]: output for output in answer.json()["outputs"]}


def add_dataset(service: Service, columns: Columns) -> str:
    """The id of a data set that is sent as a Parquet file."""
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink)
    answer = service.http.post(
        "/datasets",
        params={"name": "some"},
        content=sink.getvalue(),
        headers={"Content-Type": PARQUET},
    )
    return str(answer.json()["id"])


def carried_out(service: Service, answer: httpx.Response) -> dict[str, Any]:
    """The job that an answer tells of, after this process did it as a worker does."""
    assert answer.status_code == 202, answer.text
    job = answer.json()["id"]
    runner = JobRunner(service.context, "test", WorkerMetrics(), lambda: False)
    while service.context.jobs.queued_ids(job):
        runner.wake()
    return dict(service.http.get(f"/jobs/{job}").json())


def done(service: Service, answer: httpx.Response) -> dict[str, Any]:
    """The same for a job that succeeds."""
    job = carried_out(service, answer)
    assert job["status"] == "succeeded", job["error"]
    return job


def result_of(service: Service, job: Mapping[str, Any]) -> pa.Table:
    """The table that a job has written."""
    answer = answered(service.http.get(f"/jobs/{job['id']}/result", follow_redirects=True))
    return parquet.read_table(io.BytesIO(answer.content))


def close(value: Any) -> Any:
    """A document to compare with another: numbers up to the rounding of float32 in sums."""
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-4, abs=1e-5)
    if isinstance(value, list):
        return [close(one) for one in value]
    return {name: close(one) for name, one in value.items()} if isinstance(value, dict) else value


def num_numbers(value: Any) -> int:
    """How many numbers a JSON value contains."""
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return sum(num_numbers(one) for one in items)
    return isinstance(value, int | float)
