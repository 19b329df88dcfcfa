"""/schedules at a real service: made, shown, run, deleted, refused, and one owner's alone."""

from pathlib import Path
from typing import Any

import pytest

from core.jobs.specs import TrainSpec
from tests.app.conftest import MakeService
from tests.app.running import Service, answered, refused_paths

LINE = {"x": [float(i) for i in range(40)], "y": [2.0 * i for i in range(40)]}


@pytest.fixture
def alone(make_service: MakeService, tmp_path: Path) -> Service:
    (tmp_path / "lake").mkdir()
    return make_service(sources=f"file://{tmp_path}/lake/")


@pytest.fixture
def uploaded(alone: Service) -> str:
    dataset, _ = alone.context.datasets.add_columns("line", LINE)
    return dataset.id


def body(dataset: str, **others: Any) -> dict[str, Any]:
    train = {"model": "line", "dataset": dataset, "target": "y", "training": {"epochs": 3}}
    return {"name": "nightly", "train": train, "cron": "0 3 * * *"} | others


def test_a_schedule_is_made_shown_and_deleted(alone: Service, uploaded: str) -> None:
    gate = {"metric": "log_likelihood", "max_loss": 0.02, "min_coverage": 0.8}
    made = alone.post("/schedules", body(uploaded, time_zone="Europe/Paris", gate=gate))
    assert made.status_code == 201, made.text
    schedule = made.json()
    assert made.headers["Location"] == "/schedules/nightly"
    assert (schedule["model"], schedule["alias"], schedule["dataset"]) == (
        "line",
        "champion",
        uploaded,
    )
    assert schedule["gate"] == gate
    assert schedule["train"] == body(uploaded)["train"]
    assert (schedule["on"], schedule["runs"]) == (None, [])
    assert schedule["next_due"].endswith(("T01:00:00Z", "T02:00:00Z")), "3:00 in Paris"
    assert alone.http.get("/schedules/nightly").json() == schedule
    assert alone.http.get("/schedules").json()["data"] == [schedule]
    assert alone.http.delete("/schedules/nightly").status_code == 204
    assert alone.http.get("/schedules/nightly").status_code == 404


def test_a_run_is_a_job_one_at_a_time(alone: Service, uploaded: str) -> None:
    alone.post("/schedules", body(uploaded))
    run = answered(alone.post("/schedules/nightly/run", headers={"Idempotency-Key": "k"}), 202)
    found = run.json()
    assert (found["reason"], found["status"], found["outcome"]) == ("manual", "queued", None)
    assert run.headers["Location"] == f"/jobs/{found['job']}"
    again = alone.post("/schedules/nightly/run", headers={"Idempotency-Key": "k"})
    assert (again.content, again.headers["Idempotency-Replayed"]) == (run.content, "true")
    answered(alone.post("/schedules/nightly/run"), 409)
    job = alone.http.get(f"/jobs/{found['job']}").json()
    assert (job["kind"], job["model"], job["request"]["alias"]) == ("train", "line", "champion")
    assert job["request"]["training"]["epochs"] == 3
    spec = TrainSpec.model_validate(alone.context.jobs.get(job["id"]).spec)
    assert spec.given == ("target", "training.epochs")
    alone.http.post(f"/jobs/{found['job']}/cancel")
    [shown] = alone.http.get("/schedules/nightly/runs").json()["data"]
    assert (shown["number"], shown["status"]) == (found["number"], "cancelled")


def test_a_wrong_schedule_is_refused_by_place(alone: Service, uploaded: str) -> None:
    for change, path in (
        ({"cron": None}, "/cron"),
        ({"on": "refresh"}, "/cron"),
        ({"cron": "0 3 * *"}, "/cron"),
        ({"cron": "0 0 31 2 *"}, "/cron"),
        ({"time_zone": "Mars"}, "/time_zone"),
        ({"cron": None, "on": "refresh", "time_zone": "Europe/Paris"}, "/time_zone"),
        ({"cron": None, "on": "refresh"}, "/on"),  # the data set was uploaded
        ({"gate": {"min_coverage": 0.95}}, "/gate/min_coverage"),
    ):
        sent = {k: v for k, v in body(uploaded, **change).items() if v is not None}
        refused(alone, sent, path)
    for change, path in (
        ({"target": "z"}, "/train/target"),
        ({"dataset": "ds_0"}, "/train/dataset"),
        ({"training": {"epochs": 0}}, "/train/training/epochs"),
        ({"alias": "3"}, "/train/alias"),
    ):
        sent = body(uploaded)
        sent["train"] |= change
        refused(alone, sent, path)


def refused(service: Service, sent: dict[str, Any], path: str) -> None:
    assert refused_paths(service.post("/schedules", sent)) == [path]
