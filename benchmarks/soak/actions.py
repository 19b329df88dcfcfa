"""What clients do to a service: one function for each kind of work, which leaves nothing behind.

A client undoes what it did: models, data sets, labels and stored predictions are deleted. The rows
of jobs, their events, and lines of the audit log stay, as in any installation.
"""

import io
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pyarrow as pa

ARROW = "application/vnd.apache.arrow.stream"
STREAM = {"Accept": "text/event-stream"}
PARQUET = {"Content-Type": "application/vnd.apache.parquet"}
TINY = {
    "target": "y",
    "network": {"hidden": [16]},
    "training": {"epochs": 3, "batch_size": 64, "learning_rate": 0.01, "fine_tune_epochs": 1},
}
STEADY = {"number": "regression", "kind": "classification"}  # models that stay, and their tasks
PROBE = {"model": "number", "inputs": [{"x": 0.5, "z": "b"}], "samples": 10, "seed": 1}
ENDED = {"succeeded", "failed", "cancelled"}
PATIENCE_SECONDS = 600.0  # it is no fault of a service that its machine is busy
_numbers = itertools.count()


class Unexpected(Exception):
    """A response that is neither right nor a refusal that says when to come back."""


class Refused(Exception):
    """429, or 503 with `Retry-After`."""


def is_refusal(response: httpx.Response) -> bool:
    """Whether it says when to come back."""
    return response.status_code in (429, 503) and "retry-after" in response.headers


class Caller:
    """One client with a connection and random numbers of its own."""

    def __init__(self, url: str, seed: int) -> None:
        self.http = httpx.Client(base_url=url, timeout=PATIENCE_SECONDS)
        self.random = random.Random(seed)

    def ask(self, method: str, path: str, *expected: int, **options: Any) -> httpx.Response:
        """The response, which has one of the expected statuses (200 by default)."""
        response = self.http.request(method, path, **options)
        if is_refusal(response):
            raise Refused
        if response.status_code not in (expected or (200,)):
            raise Unexpected(f"{method} {path}: {response.status_code} {response.text[:300]}")
        return response

    def rows(self, most: int = 50) -> list[dict[str, Any]]:
        """So many random rows, one at least."""
        count = self.random.randint(1, most)
        return [
            {"x": self.random.uniform(-1, 1), "z": self.random.choice("abc")} for _ in range(count)
        ]

    def table(self, rows: int = 300) -> dict[str, list[Any]]:
        """Columns that no other table has, with a target."""
        x = [self.random.uniform(-1, 1) for _ in range(rows)]
        z = [self.random.choice("abc") for _ in x]
        y = [3 * a + (b == "b") + self.random.gauss(0, 0.1) for a, b in zip(x, z, strict=True)]
        return {"x": x, "z": z, "y": y}


def predict(caller: Caller) -> None:
    """JSON: any of the models, any number of samples, intervals of two kinds."""
    body = {
        "model": caller.random.choice(list(STEADY)),
        "inputs": caller.rows(),
        "samples": caller.random.choice([1, 10, 100, 1000]),
        "seed": caller.random.randrange(1000),
    }
    caller.ask("POST", "/predict", json=body)


def predict_by_default(caller: Caller) -> None:
    """As most clients do: no number of samples, no seed."""
    caller.ask("POST", "/predict", json={"model": "number", "inputs": caller.rows(5)})


def predict_arrow(caller: Caller) -> None:
    """A stream in, a stream out."""
    table, sink = pa.Table.from_pylist(caller.rows(500)), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    headers = {"Content-Type": ARROW, "Accept": ARROW}
    caller.ask("POST", "/predict?model=number", content=sink.getvalue(), headers=headers)


def infer(caller: Caller) -> None:
    """The Open Inference Protocol."""
    rows = caller.rows()
    shape = [len(rows)]
    inputs = [
        {"name": "x", "shape": shape, "datatype": "FP64", "data": [row["x"] for row in rows]},
        {"name": "z", "shape": shape, "datatype": "BYTES", "data": [row["z"] for row in rows]},
    ]
    caller.ask("POST", "/v2/models/number/infer", json={"inputs": inputs})


def label(caller: Caller) -> None:
    """Stored rows get their labels; some are withdrawn; the stored rows are deleted."""
    rows = caller.rows(10)
    body = {"model": "number", "inputs": rows, "samples": 10, "store": True}
    stored = caller.ask("POST", "/predict", json=body).json()["id"]
    truth = {"prediction": stored, "truth": [3 * row["x"] for row in rows]}
    given = caller.ask("POST", "/feedback", 201, json=truth).json()["id"]
    if caller.random.random() < 0.5:
        caller.ask("DELETE", f"/feedback/{given}", 204)
    caller.ask("DELETE", f"/predictions/{stored}", 204)


def upload(caller: Caller) -> None:
    """A CSV file that nobody sent before, read, shown and deleted."""
    columns = caller.table(caller.random.randint(10, 5000))
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values()))]  # noqa: B905
    headers = {"Content-Type": "text/csv"}
    path = f"/datasets?name=upload-{next(_numbers)}"
    found = caller.ask("POST", path, 201, content="\n".join(lines), headers=headers).json()["id"]
    caller.ask("GET", f"/datasets/{found}")
    caller.ask("DELETE", f"/datasets/{found}", 204)


def train(caller: Caller) -> None:
    """A small model: its events followed to the end, a prediction, then all of it deleted."""
    name = f"short-{caller.random.randrange(5)}-{next(_numbers)}"
    job = _submitted(caller, name)
    if _followed(caller, job["id"]) == "succeeded":
        caller.ask("POST", "/predict", json={**PROBE, "model": name})
        caller.ask("GET", f"/models/{name}/versions/1/card")
        caller.ask("DELETE", f"/models/{name}", 204)
    caller.ask("DELETE", f"/datasets/{job['request']['dataset']}", 204)


def cancel(caller: Caller) -> None:
    """A training that nobody wants any more, with a stream that is left in the middle."""
    job = _submitted(caller, f"cancelled-{next(_numbers)}", epochs=500)
    with caller.http.stream("GET", f"/jobs/{job['id']}/events", headers=STREAM) as response:
        next(response.iter_lines())
    caller.ask("POST", f"/jobs/{job['id']}/cancel", 200, 202, 409)
    if _followed(caller, job["id"]) == "succeeded":
        caller.ask("DELETE", f"/models/{job['model']}", 204)
    caller.ask("DELETE", f"/datasets/{job['request']['dataset']}", 204)


def look(caller: Caller) -> None:
    """Lists, a page, metrics."""
    paths = ["/models", "/datasets", "/jobs", "/ui/models", "/metrics", "/health/ready"]
    caller.ask("GET", caller.random.choice(paths))


def mistake(caller: Caller) -> None:
    """Requests that are refused."""
    caller.ask("POST", "/predict", 404, json={**PROBE, "model": "nobody"})
    caller.ask("POST", "/predict", 422, json={**PROBE, "samples": 0})
    broken = caller.random.randbytes(99)
    caller.ask("POST", "/datasets?name=broken", 400, headers=PARQUET, content=broken)


ACTIONS: dict[Callable[[Caller], None], int] = {  # weights
    predict: 30,
    predict_by_default: 15,
    predict_arrow: 15,
    infer: 15,
    label: 6,
    upload: 6,
    look: 8,
    mistake: 3,
    train: 1,
    cancel: 1,
}


def make_steady(caller: Caller) -> None:
    """Train the models that stay."""
    for name, task in STEADY.items():
        columns = caller.table()
        if task == "classification":
            columns["y"] = ["up" if value > 0 else "down" for value in columns["y"]]
        body = {**TINY, "model": name, "data": {"columns": columns}}
        job = caller.ask("POST", "/train", 202, json=body).json()
        if (status := _followed(caller, job["id"])) != "succeeded":
            raise Unexpected(f"the training of {name} {status}")


def _submitted(caller: Caller, model: str, epochs: int = 3) -> dict[str, Any]:
    training = {**TINY["training"], "epochs": epochs}  # type: ignore[dict-item]
    data = {"columns": caller.table()}
    body = {**TINY, "training": training, "model": model, "data": data}
    found: dict[str, Any] = caller.ask("POST", "/train", 202, json=body).json()
    return found


def _followed(caller: Caller, job: str) -> str:
    """The status in which a job ended, by its stream of events."""
    with caller.http.stream("GET", f"/jobs/{job}/events", headers=STREAM, timeout=300) as response:
        for _ in _lines(response):
            pass
    status: str = caller.ask("GET", f"/jobs/{job}").json()["status"]
    if status not in ENDED:
        raise Unexpected(f"the events of job {job} ended while it was {status}")
    return status


def _lines(response: httpx.Response) -> Iterator[str]:
    if response.status_code != 200:
        raise Unexpected(f"events: {response.status_code}")
    return response.iter_lines()
