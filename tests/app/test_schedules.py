"""/schedules at a real service: made, shown, run, deleted, refused, and one owner's alone."""

from pathlib import Path
from typing import Any

import pytest

from core.jobs.specs import TrainSpec
from tests.app.conftest import MakeService
from tests.app.running import Service

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


def from_source(service: Service, folder: Path) -> str:
    (folder / "a.csv").write_text("x,y\n" + "".join(f"{i},{2 * i}\n" for i in range(40)))
    request = {"name": "line", "source": {"uri": f"file://{folder}/*.csv"}}
    made = service.post("/datasets", request)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


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
    run = alone.post("/schedules/nightly/run", headers={"Idempotency-Key": "k"})
    assert run.status_code == 202, run.text
    found = run.json()
    assert (found["reason"], found["status"], found["outcome"]) == ("manual", "queued", None)
    assert run.headers["Location"] == f"/jobs/{found['job']}"
    again = alone.post("/schedules/nightly/run", headers={"Idempotency-Key": "k"})
    assert (again.content, again.headers["Idempotency-Replayed"]) == (run.content, "true")
    other = alone.post("/schedules/nightly/run")
    assert other.status_code == 409
    assert "has not ended: wait, or cancel its job" in other.json()["detail"]
    job = alone.http.get(f"/jobs/{found['job']}").json()
    assert (job["kind"], job["model"], job["request"]["alias"]) == ("train", "line", "champion")
    assert job["request"]["training"]["epochs"] == 3
    spec = TrainSpec.model_validate(alone.context.jobs.get(job["id"]).spec)
    assert spec.given == ("target", "training.epochs")
    alone.http.post(f"/jobs/{found['job']}/cancel")
    [shown] = alone.http.get("/schedules/nightly/runs").json()["data"]
    assert (shown["number"], shown["status"]) == (found["number"], "cancelled")


def test_a_refresh_starts_a_schedule_that_waits_for_it(alone: Service, tmp_path: Path) -> None:
    first = from_source(alone, tmp_path / "lake")
    request = {k: v for k, v in body(first, on="refresh").items() if k != "cron"}
    made = alone.post("/schedules", request).json()
    assert (made["on"], made["cron"], made["next_due"]) == ("refresh", None, None)
    assert alone.post(f"/datasets/{first}/refresh").json()["id"] == first
    assert alone.http.get("/schedules/nightly").json()["next_due"] is None, "the same bytes"
    (tmp_path / "lake" / "b.csv").write_text("x,y\n50,100\n")
    second = alone.post(f"/datasets/{first}/refresh").json()["id"]
    due = alone.http.get("/schedules/nightly").json()
    assert due["dataset"] == second
    assert due["next_due"] is not None
    [job] = alone.context.starts.start_due()
    assert alone.context.starts.start_due() == []
    [run] = alone.http.get("/schedules/nightly").json()["runs"]
    assert (run["job"], run["reason"]) == (job, "refresh")
    spec = TrainSpec.model_validate(alone.context.jobs.get(str(job)).spec)
    assert spec.dataset == second
    assert spec.scheduled is not None
    assert not spec.scheduled.refreshes, "the refresh that started it has read the source"


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        ({"cron": None}, "/cron", "give either cron or on"),
        ({"on": "refresh"}, "/cron", "give either cron or on"),
        ({"cron": "0 3 * *"}, "/cron", "4 fields instead of 5"),
        ({"cron": "0 0 31 2 *"}, "/cron", "is not a cron expression"),
        ({"time_zone": "Mars"}, "/time_zone", "'Mars' is not a time zone"),
        ({"cron": None, "on": "refresh", "time_zone": "Europe/Paris"}, "/time_zone", "for cron"),
        ({"cron": None, "on": "refresh"}, "/on", "was uploaded: give cron"),
        ({"on": "upload"}, "/on", "must be 'refresh'"),
        ({"name": "Nightly!"}, "/name", "lower-case"),
        ({"gate": {"max_loss": -1}}, "/gate/max_loss", "greater than or equal to 0"),
        ({"gate": {"min_coverage": 0.95}}, "/gate/min_coverage", "less than or equal to 0.9"),
        ({"gate": {"metric": "rmse"}}, "/gate/metric", "must be 'log_likelihood'"),
        ({"gate": {"min": 1}}, "/gate/min", "unknown field"),
        ({"every": "day"}, "/every", "unknown field"),
    ],
)
def test_a_wrong_schedule_is_refused_by_place(
    alone: Service, uploaded: str, change: dict[str, Any], path: str, message: str
) -> None:
    sent = {k: v for k, v in body(uploaded, **change).items() if v is not None}
    refused = alone.post("/schedules", sent)
    assert refused.status_code == 422, refused.text
    [error] = refused.json()["errors"]
    assert error["path"] == path
    assert message in error["message"]


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        ({"target": "z"}, "/train/target", "the data set has no column 'z'"),
        ({"dataset": "ds_0"}, "/train/dataset", "there is no dataset 'ds_0'"),
        ({"training": {"epochs": 0}}, "/train/training/epochs", "greater than or equal to 1"),
        ({"target": ["x", "y"]}, "/train/target", "would be several targets"),
        ({"alias": "3"}, "/train/alias", "would read as a version number"),
    ],
)
def test_a_wrong_training_is_refused_by_place(
    alone: Service, uploaded: str, change: dict[str, Any], path: str, message: str
) -> None:
    sent = body(uploaded)
    sent["train"] |= change
    if change.get("target") == ["x", "y"]:
        sent["train"]["data"] = {"columns": LINE | {"z": LINE["x"]}}
        del sent["train"]["dataset"]
    refused = alone.post("/schedules", sent)
    assert refused.status_code == 422, refused.text
    [error] = refused.json()["errors"]
    assert error["path"] == path
    assert message in error["message"]


def test_inline_rows_become_a_data_set(alone: Service) -> None:
    sent = body("")
    del sent["train"]["dataset"]
    sent["train"]["data"] = {"columns": LINE}
    made = alone.post("/schedules", sent)
    assert made.status_code == 201, made.text
    assert made.json()["train"]["dataset"] == made.json()["dataset"]
    assert "data" not in made.json()["train"]


def test_a_name_is_taken_once(alone: Service, uploaded: str) -> None:
    assert alone.post("/schedules", body(uploaded)).status_code == 201
    again = alone.post("/schedules", body(uploaded))
    assert again.status_code == 409
    assert again.json()["detail"] == "there is a schedule 'nightly': take another name"


def test_it_is_made_once_per_idempotency_key(alone: Service, uploaded: str) -> None:
    key = {"Idempotency-Key": "k"}
    first = alone.post("/schedules", body(uploaded), headers=key)
    again = alone.post("/schedules", body(uploaded), headers=key)
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["Location"] == first.headers["Location"]
