"""Forecasts of local times over HTTP: files, JSON and data sets agree about the clock."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.app.running import Service, answered, serving
from tests.app.serving.wires import close, done

BERLIN = ZoneInfo("Europe/Berlin")
ZONED = {"column": "time", "zone": "Europe/Berlin"}
MODELS = ("local", "instants")


def _hours(first: str, count: int) -> list[datetime]:
    start = datetime.fromisoformat(first).replace(tzinfo=UTC)
    return [(start + timedelta(hours=i)).astimezone(BERLIN) for i in range(count)]


def _load(hour: datetime) -> float:
    return (20.0 if 8 <= hour.hour < 20 else 10.0) + hour.timetuple().tm_yday % 7 / 10


LEARNED = _hours("2024-10-09T22:00", 600)
HISTORY = _hours("2024-10-24T22:00", 52)  # up to the second 2:00
FORMS = {
    "local": lambda hour: f"{hour:%Y-%m-%dT%H:%M}",
    "offset": lambda hour: hour.isoformat(),
    "utc": lambda hour: f"{hour.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
}


def _csv(hours: list[datetime], form: str) -> str:
    return "time,load\n" + "".join(f"{FORMS[form](hour)},{_load(hour)}\n" for hour in hours)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("local-times")) as running:
        for name, form in zip(MODELS, ("local", "offset"), strict=True):
            done(running, _train(running, name, _csv(LEARNED, form), ZONED))
        yield running


def _upload(service: Service, name: str, text: str) -> str:
    answer = service.http.post(
        f"/datasets?name={name}", content=text, headers={"Content-Type": "text/csv"}
    )
    return str(answer.json()["id"])


def _train(service: Service, model: str, text: str, time: Any) -> Any:
    request = {
        "model": model,
        "dataset": _upload(service, f"{model}.csv", text),
        "target": "load",
        "task": "forecasting",
        "forecast": {"time": time, "horizon": 3, "context": 4, "season": 24, "classics": False},
        "network": {"kind": "rnn", "hidden": [4]},
        "training": {"epochs": 5},
        "pruning": [],
    }
    return service.post("/train", request)


def _ask(service: Service, model: str, form: str) -> Mapping[str, Any]:
    inputs = {"time": [FORMS[form](one) for one in HISTORY], "load": [*map(_load, HISTORY)]}
    answer = answered(service.post("/predict", {"model": model, "inputs": inputs, "samples": 20}))
    found: Mapping[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_history_gives_one_answer(service: Service, model: str, form: str) -> None:
    found = _ask(service, model, form)
    assert found["times"] == [f"2024-10-27T0{hour}:00:00Z" for hour in (2, 3, 4)]
    assert found["mean"] == close(_ask(service, "local", "local")["mean"])


def test_two_rows_of_one_time_are_refused_with_their_lines(service: Service) -> None:
    refused = _train(service, "refused", _csv(LEARNED, "local"), "time")
    (error,) = refused.json()["errors"]
    assert (refused.status_code, error["path"]) == (422, "/forecast/key")
    assert "2 rows of time 2024-10-27 02:00" in error["message"]
    assert '"zone": "Europe/Berlin"} (lines 412 and 413)' in error["message"]
