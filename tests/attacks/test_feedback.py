"""Row 9: labels that make a model look worse, or better, than it is."""

import math
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from core.access.callers import Caller, View
from core.access.keys import Keys, Scope
from tests.app.running import Service, answered, publish, refused_paths, regression_columns, serving
from tests.app.test_keys import ADMIN_KEY, bearer, key_file
from tests.waiting import wait_until

ROWS = [{"size": 0.5, "wood": "oak", "wet": True, "day": None}] * 4


@dataclass
class People:
    """A service with a model of Anna's."""

    service: Service
    anna: httpx.Client
    shop: httpx.Client  # a key of scope `predict` without an owner, which predicts with all models
    other: httpx.Client  # another such key
    admin: httpx.Client

    def rolling(self) -> dict[str, Any]:
        return dict(self.anna.get("/models/price/feedback").json()["metrics"])

    def actions(self) -> list[tuple[str, str]]:
        """Action and object of the audit log, newest first."""
        lines = self.admin.get("/audit").json()["data"]
        return [(line["action"], line["object"]) for line in lines]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    folder = tmp_path_factory.mktemp("feedback")
    with ExitStack() as stack:
        service = stack.enter_context(serving(folder / "data", admin_key_file=key_file(folder)))
        hers = service.context.for_caller(Caller(View("anna", sees_all=False), "anna"))
        publish(hers, "price", regression_columns(), target="price")
        keys = Keys(service.context.database)
        texts = [
            keys.create("anna", Scope.TRAIN)[1],
            keys.create("shop", Scope.PREDICT)[1],
            keys.create("other", Scope.PREDICT)[1],
            ADMIN_KEY,
        ]
        made = [httpx.Client(base_url=service.url, headers=bearer(t), timeout=120) for t in texts]
        for client in made:
            stack.enter_context(client)
            wait_until(lambda client=client: client.get("/models").status_code == 200)
        yield People(service, *made)
        shutil.rmtree(folder / "data", ignore_errors=True)


def labels(truth: list[float], **more: Any) -> dict[str, Any]:
    return {"model": "price", "inputs": ROWS[: len(truth)], "truth": truth, **more}


def test_a_key_labels_only_what_it_predicted(people: People) -> None:
    answered(people.shop.post("/feedback", json=labels([1e30])), 403)
    body = {"model": "price", "inputs": ROWS, "store": True}
    told = people.shop.post("/predict", json=body).json()
    sent = {"prediction": told["id"], "truth": told["mean"]}
    assert people.other.post("/feedback", json=sent).status_code == 404
    made = answered(people.shop.post("/feedback", json=sent), 201)
    feedback = made.json()["id"]
    assert ("feedback.create", feedback) in people.actions()
    assert people.other.delete(f"/feedback/{feedback}").status_code == 403
    assert people.shop.delete(f"/feedback/{feedback}").status_code == 204


def test_a_label_that_cannot_be_is_refused(people: People) -> None:
    """The reproduction: 1e30 made the rolling log likelihood -4.7e59."""
    before = people.rolling()
    assert refused_paths(people.anna.post("/feedback", json=labels([1.0, 1e30]))) == ["/truth/1"]
    assert people.rolling() == before


def test_one_label_moves_the_window_by_a_bounded_step(people: People) -> None:
    answer = people.anna.post("/predict", json={"model": "price", "inputs": ROWS}).json()
    told, own = answer["mean"], math.sqrt(answer["variance"]["total"][0])
    first = people.anna.post("/feedback", json=labels(told)).json()
    before, held_out = people.rolling(), people.anna.get("/models/price/versions/1").json()
    usual = held_out["metrics"]["rmse"]
    second = people.anna.post("/feedback", json=labels([told[0] + 1000 * usual])).json()
    metrics = people.rolling()
    rows = metrics["rows"]
    assert rows == before["rows"] + 1
    assert metrics["mae"] <= before["mae"] + 30 * max(usual, 1.01 * own) / rows
    lowest = held_out["metrics"]["log_likelihood"] - 450
    assert metrics["log_likelihood"] >= (before["log_likelihood"] * (rows - 1) + lowest) / rows - 1
    assert metrics["coverage"]["0.9"] < before["coverage"]["0.9"]
    assert all(map(math.isfinite, (metrics["rmse"], metrics["crps"])))
    for feedback in (first, second):
        assert people.anna.delete(f"/feedback/{feedback['id']}").status_code == 204


def test_labels_are_taken_back(people: People) -> None:
    told = people.anna.post("/predict", json={"model": "price", "inputs": ROWS}).json()["mean"]
    kept = people.anna.post("/feedback", json=labels(told)).json()["id"]
    before = people.rolling()
    assert before["rows"] == 4
    wrong = people.anna.post("/feedback", json=labels([value + 10 for value in told])).json()["id"]
    assert people.rolling()["mae"] > before["mae"]
    assert people.anna.delete(f"/feedback/{wrong}").status_code == 204
    again = people.rolling()
    same = ("rows", "log_likelihood", "rmse", "coverage")
    assert {name: again[name] for name in same} == {name: before[name] for name in same}
    assert ("feedback.withdraw", wrong) == people.actions()[0]
    assert people.anna.delete(f"/feedback/{wrong}").status_code == 404
    assert people.anna.delete(f"/feedback/{kept}").status_code == 204
    assert people.rolling() == {"rows": 0}
