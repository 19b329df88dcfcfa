"""POST /train and /jobs: requests become rows, with every default filled in and told."""

import shutil
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from core.context import open_context
from core.jobs.jobs import JobStatus
from core.settings import load_settings
from tests.app.running import Service, answered, refused_paths


@pytest.fixture
def dataset(trained: Path, tmp_path: Path) -> str:
    """Of every copy of the trained models. An open database has files that come and go."""
    copy = shutil.copytree(trained, tmp_path / "opened")
    context = open_context(load_settings(data_dir=copy))
    found = context.datasets.list().data
    context.close()
    return next(d.id for d in found if d.name == "price")


def train(service: Service, **body: Any) -> httpx.Response:
    return service.post("/train", {"model": "m", "target": "price"} | body)


def test_a_small_request_is_filled_in_with_the_recipe(own: Service, dataset: str) -> None:
    answer = answered(train(own, dataset=dataset), 202)
    job = answer.json()
    assert answer.headers["location"] == f"/jobs/{job['id']}"
    assert set(job) == {
        "id", "kind", "status", "model", "version", "attempt", "queue_position", "progress",
        "metrics", "error", "request", "notes", "created_at", "started_at", "finished_at",
    }  # fmt: skip
    assert (job["status"], job["attempt"], job["queue_position"]) == ("queued", 0, 1)
    assert job["error"] is job["progress"] is job["version"] is None
    request = job["request"]
    assert [f["name"] for f in request["features"]] == ["size", "wood", "wet", "day"]
    assert (request["task"], request["likelihood"]) == ("regression", "auto")
    assert request["pruning"] == [0.5, 0.75, 0.9, 0.95]
    assert (request["dataset"], request["alias"], request["metadata"]) == (dataset, None, {})
    assert request["training"]["effort"] == "standard"
    one_fit = train(own, dataset=dataset, network={"hidden": [20]}).json()["request"]
    assert (one_fit["likelihood"], one_fit["training"]["effort"]) == ("heteroscedastic", None)


def test_a_filled_in_request_can_be_sent_again(own: Service, dataset: str) -> None:
    first = train(own, dataset=dataset, features=["size", {"name": "wet", "type": "boolean"}])
    again = answered(own.post("/train", first.json()["request"]), 202)
    assert again.json()["request"] == first.json()["request"]


def test_the_contracts_example_is_taken(own: Service) -> None:
    columns = {
        "x0": list(range(20)),
        "x1": [i % 3 for i in range(20)],
        "y": [i * 2.0 for i in range(20)],
    }
    body = {
        "model": "concrete",
        "data": {"columns": columns},
        "target": "y",
        "features": ["x0", "x1"],
        "task": "regression",
        "network": {"kind": "mlp", "hidden": [50], "activation": "relu"},
        "method": {
            "kind": "bbb",
            "estimator": "local",
            "prior": {"kind": "gaussian", "sigma": "auto"},
            "kl": {"weight": "uniform"},
        },
        "training": {
            "epochs": 200, "batch_size": 128, "learning_rate": 0.001, "validation_fraction": 0.1,
            "split": "random", "patience": 20, "seed": 0, "device": "auto",
        },
        "pruning": [0.5, 0.75, 0.9, 0.95],
        "alias": "champion",
        "metadata": {"owner": "me"},
    }  # fmt: skip
    job = answered(own.post("/train", body), 202)
    request = job.json()["request"]
    assert request["metadata"] == {"owner": "me"}
    stored = own.http.get(f"/datasets/{request['dataset']}").json()
    assert (stored["name"], stored["rows"], stored["format"]) == ("concrete", 20, "json")


def test_a_wrong_field_is_named(service: Service, dataset: str) -> None:
    for change, path in (
        ({"dataset": "ds_none"}, "/dataset"),
        ({"features": [{"name": "day", "type": "tensor"}]}, "/features/0/type"),
        ({"method": {"kind": "horoscope"}}, "/method/kind"),
        ({"likelihood": {"kind": "student"}}, "/likelihood"),
        ({"method": {"kind": "map"}, "pruning": [0.5]}, "/pruning"),
        ({"task": "forecasting", "forecast": {"season": [7, 2]}}, "/forecast/season"),
        ({"task": "forecasting", "forecast": {"season": [0, 7]}}, "/forecast/season/0"),
        ({"alias": "3"}, "/alias"),
        ({"model": "a/b"}, "/model"),
        ({"metadata": {"a": "x" * 20_000}}, "/metadata"),
    ):
        assert refused_paths(train(service, **({"dataset": dataset} | change))) == [path]
    assert service.http.get("/jobs?model=m").json()["data"] == []


def test_jobs_are_listed_by_status_and_model(own: Service, dataset: str) -> None:
    ids = [train(own, dataset=dataset, model=name).json()["id"] for name in ("a", "b", "a")]
    found = own.http.get("/jobs", params={"model": "a", "status": "queued"}).json()["data"]
    assert [job["id"] for job in found] == [ids[2], ids[0]]
    assert [job["queue_position"] for job in found] == [3, 1]
    assert len(own.http.get("/jobs?status=succeeded").json()["data"]) == 3
    assert own.http.get("/jobs?status=done").status_code == 422


def test_cancel_and_resume_follow_the_state_machine(own: Service, dataset: str) -> None:
    job = f"/jobs/{train(own, dataset=dataset).json()['id']}"
    assert own.http.post(f"{job}/resume").status_code == 409
    assert own.http.post(f"{job}/cancel").json()["status"] == "cancelled"
    assert own.http.post(f"{job}/resume").json()["status"] == "queued"
    claim = own.context.jobs.claim(job.removeprefix("/jobs/"), "w", 3600)
    assert claim is not None
    assert own.http.post(f"{job}/cancel").json()["status"] == "cancelling"
    own.context.jobs.finish(claim, JobStatus.CANCELLED)
    assert own.http.get(job).json()["status"] == "cancelled"
    succeeded = own.http.get("/jobs?status=succeeded").json()["data"][0]["id"]
    assert own.http.post(f"/jobs/{succeeded}/cancel").status_code == 409
    for path in ("/jobs/none", "/jobs/none/events"):
        assert own.http.get(path).status_code == 404
    assert own.http.post("/jobs/none/cancel").status_code == 404


def test_events_come_in_order_and_page_by_page(own: Service, dataset: str) -> None:
    job = train(own, dataset=dataset).json()["id"]
    claim = own.context.jobs.claim(job, "w", 3600)
    assert claim is not None
    progress = {"epoch": 1, "epochs": 2, "fraction": 0.5, "eta_seconds": None}
    own.context.jobs.report(claim, progress=progress, metrics={"nelbo": 1.5})
    events = own.http.get(f"/jobs/{job}/events").json()
    assert [event["type"] for event in events["data"]] == ["state", "state", "progress", "metrics"]
    assert [event["id"] for event in events["data"]] == [1, 2, 3, 4]
    assert events["data"][0]["status"] == "queued"
    assert events["data"][2].items() >= progress.items()
    assert events["next_cursor"] is None

    first = own.http.get(f"/jobs/{job}/events?limit=3").json()
    rest = own.http.get(f"/jobs/{job}/events", params={"cursor": first["next_cursor"]}).json()
    assert first["data"] + rest["data"] == events["data"]
    assert own.http.get(f"/jobs/{job}").json()["progress"] == progress


def test_a_job_waits_when_no_worker_can_be_woken(own: Service, dataset: str) -> None:
    broker = own.context.settings.data_dir / "queue"
    for folder in sorted(broker.rglob("*"), reverse=True):
        folder.rmdir() if folder.is_dir() else folder.unlink()
    broker.rmdir()
    broker.write_text("no folder any more")
    answer = answered(train(own, dataset=dataset), 202)
    assert answer.json()["status"] == "queued"
    ready = answered(own.http.get("/health/ready"))
    assert ready.json()["broker"] != "ok"


ROWS = 200
rng = np.random.default_rng(0)
X, Z = rng.normal(size=(2, ROWS))
Y = X + rng.normal(size=ROWS)


def notes(own: Service, columns: dict[str, list[object]], **body: object) -> list[str]:
    given = {"model": "m", "target": "y", "data": {"columns": columns}, **body}
    answer: httpx.Response = own.post("/train", given)
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert own.http.get(f"/jobs/{job['id']}").json()["notes"] == job["notes"]
    assert "notes" not in job["request"]
    found: list[str] = job["notes"]
    return found


def test_a_setting_that_turns_off_the_search_is_named(own: Service) -> None:
    columns: dict[str, list[object]] = {"x": X.tolist(), "y": Y.tolist()}
    (note,) = notes(own, columns, training={"epochs": 5})
    assert note.startswith("training.epochs is given without training.effort")
    (note,) = notes(own, columns, network={"kind": "mlp", "hidden": [8]})
    assert note.startswith("network.hidden is given")
    for kept in ({"learning_rate": 0.001}, {"epochs": 5, "effort": "quick"}):
        assert notes(own, columns, training=kept) == []


def test_columns_that_are_no_features_are_named_with_the_reason(own: Service) -> None:
    columns = {
        "customer_id": list(range(ROWS)),
        "x": X.tolist(),
        "w": np.ones(ROWS).tolist(),
        "group": [f"g{i % 20}" for i in range(ROWS)],
        "review": [
            f"a rather long sentence of the customer number {i}, unread" for i in range(ROWS)
        ],
        "y": Y.tolist(),
    }
    split = {"split": {"by": "group"}}
    found = notes(own, columns, weight="w", training=split)
    named = {name: [n for n in found if f"{name!r}" in n] for name in columns}
    assert "identifies rows" in named["customer_id"][0]
    assert "weights of the rows" in named["w"][0]
    assert "groups that the split keeps together" in named["group"][0]
    assert "free text" in named["review"][0]
    assert not named["x"]
    chosen = notes(own, columns, weight="w", training=split, features=["x"])
    assert not [note for note in chosen if "customer_id" in note]
    (dataset,) = (d for d in own.http.get("/datasets").json()["data"] if d["name"] == "m")
    fix = {"columns": [{"name": "review", "use": True}]}
    changed = own.post(f"/datasets/{dataset['id']}/columns", fix).json()
    job = own.post("/train", {"model": "m", "target": "y", "dataset": changed["id"]}).json()
    assert {"name": "review", "type": "text"} in job["request"]["features"]
