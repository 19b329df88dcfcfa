"""Owners in front of a real service: what is another's is not there, and what is shared is not
one's own.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from app.access.key_ring import RateLimit
from core.access.callers import Caller, View
from core.access.keys import Keys, Limits, Scope
from core.database.schema import DatasetRow
from tests.app.running import Service, answered, publish, refused_paths, regression_columns, serving
from tests.app.test_keys import (
    ADMIN_KEY,
    bearer,
    key_file,
    reading_keys_often,
    wait_until,
    wait_until_known,
)

TABLE = b"size,price\n" + b"".join(b"%d,%d\n" % (i, 2 * i) for i in range(40))
PREDICT = {"model": "secret", "inputs": [[1.0, "oak", True, None]], "samples": 10}


@dataclass
class People:
    """A service, and clients of it with the keys of several owners."""

    service: Service
    anna: httpx.Client
    ben: httpx.Client
    app: httpx.Client  # predicts with the models of all
    admin: httpx.Client

    def made(self, name: str, scope: Scope, owner: str | None = None, **limits: int) -> str:
        """A new key that the service has noticed."""
        keys = Keys(self.service.context.database)
        _, text = keys.create(name, scope, owner, Limits(**limits))
        wait_until_known(self.service, text)
        return text

    def publish(self) -> None:
        view = View("anna", sees_all=False)
        hers = self.service.context.for_caller(Caller(view, "anna"))
        publish(hers, "secret", regression_columns(), target="price", alias="champion")

    def client(self, text: str) -> httpx.Client:
        return httpx.Client(base_url=self.service.url, headers=bearer(text), timeout=120)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """Anna has a model, a data set and a job, which nobody else is to see."""
    folder = tmp_path_factory.mktemp("owners")
    with (
        reading_keys_often(),
        serving(
            folder / "data", admin_key_file=key_file(folder), webhooks="hooks.example.org"
        ) as service,
        httpx.Client(timeout=120) as nobody,
    ):
        people = People(service, nobody, nobody, nobody, nobody)
        with ExitStack() as stack:
            made = {"anna": Scope.TRAIN, "ben": Scope.TRAIN, "app": Scope.PREDICT}
            keys = {name: people.made(name, scope) for name, scope in made.items()}
            for name, text in (keys | {"admin": ADMIN_KEY}).items():
                setattr(people, name, stack.enter_context(people.client(text)))
            people.publish()
            dataset = people.anna.get("/datasets").json()["data"][-1]["id"]
            assert schedule(people.anna, dataset).status_code == 201
            yield people


def upload(client: httpx.Client, data: bytes = TABLE) -> httpx.Response:
    headers = {"Content-Type": "text/csv"}
    return client.post("/datasets", params={"name": "t"}, content=data, headers=headers)


def train(client: httpx.Client, dataset: str, model: str) -> httpx.Response:
    return client.post("/train", json={"model": model, "dataset": dataset, "target": "price"})


def schedule(client: httpx.Client, dataset: str, name: str = "secret") -> httpx.Response:
    training = {"model": name, "dataset": dataset, "target": "price"}
    body = {"name": name, "train": training, "cron": "0 3 1 1 *"}
    return client.post("/schedules", json=body)


def hers(people: People) -> dict[str, str]:
    """The identifiers of what Anna has, by the name that paths call them."""
    jobs = people.anna.get("/jobs").json()["data"]
    datasets = people.anna.get("/datasets").json()["data"]
    told = people.anna.post("/predict", json=PREDICT | {"store": True}).json()["id"]
    webhook, delivery = webhook_of(people.anna)
    labels = {"model": "secret", "inputs": PREDICT["inputs"], "truth": [3.0]}
    return {
        "name": "secret", "model": "secret", "version": "1", "alias": "champion",
        "feedback_id": people.anna.post("/feedback", json=labels).json()["id"],
        "job_id": jobs[-1]["id"], "dataset_id": datasets[-1]["id"], "prediction_id": told,
        "webhook_id": webhook, "delivery_id": delivery,
    }  # fmt: skip


def webhook_of(client: httpx.Client) -> tuple[str, str]:
    """The ids of a webhook, and of a delivery about an alias of the client's own model."""
    if not (found := client.get("/webhooks").json()["data"]):
        wanted = {"url": "https://hooks.example.org/a", "events": ["alias.moved"]}
        found = [client.post("/webhooks", json=wanted).json()]
        client.put("/models/secret/aliases/told", json={"version": 1})
        client.delete("/models/secret/aliases/told")
    path = f"/webhooks/{found[0]['id']}"
    return found[0]["id"], client.get(f"{path}/deliveries").json()["data"][0]["id"]


# Whose name it is matters there, as in `POST /train`: the next test has it.
MAKES_A_THING = (("post", "/models/{name}/versions"),)


def test_nothing_of_anothers_is_there_on_any_route(people: People) -> None:
    """Every path of the document that names a thing, whatever the method."""
    document = people.ben.get("/openapi.json").json()
    mine = hers(people)
    asked = 0
    for path, operations in document["paths"].items():
        if "{" not in path or path.startswith("/ui"):
            continue
        for method in operations:
            if (method, path) in MAKES_A_THING:
                continue
            url = re.sub(r"{(\w+)}", lambda match: mine[match[1]], path)
            query = {"dataset": mine["dataset_id"]} if path.endswith("/expected") else None
            body = body_of(path, mine)
            answered(people.ben.request(method, url, json=body, params=query), 404)
            asked += 1
    assert asked > 25
    assert people.anna.get("/models/secret").json()["aliases"] == {"champion": 1}


def test_an_archive_does_not_become_a_version_of_anothers_model(people: People) -> None:
    archive = people.anna.get("/models/secret/versions/1/archive").content
    headers = {"Content-Type": "application/x-tar"}
    taken = people.ben.post("/models/secret/versions", content=archive, headers=headers)
    assert taken.status_code == 403, taken.text
    assert len(people.anna.get("/models/secret").json()["versions"]) == 1
    own = people.ben.post("/models/bens-own/versions", content=archive, headers=headers)
    assert (own.status_code, people.ben.get("/models/bens-own").json()["owner"]) == (201, "ben")
    assert people.anna.get("/models/bens-own").status_code == 404
    assert people.ben.delete("/models/bens-own").status_code == 204


def body_of(path: str, mine: dict[str, str]) -> Any:
    """One that would be right, so that nothing but the owner can be refused."""
    if path.endswith("/columns"):
        return {"columns": [{"name": "x", "use": False}]}
    if path.endswith("/sharing"):
        return {"with": ["ben"]}
    if path.endswith("/evaluate"):
        return {"dataset": mine["dataset_id"]}
    if path.endswith("/acquire"):
        return {"dataset": mine["dataset_id"], "k": 1}
    if path.endswith("/infer"):
        return {"inputs": [{"name": "size", "shape": [1], "datatype": "FP64", "data": [1.0]}]}
    return {"version": 1} if "aliases" in path else None


def test_the_page_of_the_system_tells_nothing_of_others(people: People) -> None:
    context = people.service.context
    registered = context.registry.get("secret").created_at
    context.workers.beat("worker-of-the-house", "cpu", registered)
    assert people.anna.post("/predict", json=PREDICT).status_code == 200
    with people.client(people.made("eve", Scope.PREDICT, owner="eve")) as eve:
        admin, anna, *others = (
            client.get("/ui/system").text for client in (people.admin, people.anna, people.ben, eve)
        )
    assert "worker-of-the-house" in admin
    for page in (admin, anna):
        assert "secret" in page
    for page in others:
        for told in ("secret", "worker-of-the-house", "jobs-queued", 'id="latency"'):
            assert told not in page, told


def test_bodies_do_not_name_anothers_things_either(people: People) -> None:
    mine = hers(people)
    assert people.ben.post("/predict", json=PREDICT).status_code == 404
    feedback = {"model": "secret", "inputs": PREDICT["inputs"], "truth": [1.0]}
    assert people.ben.post("/feedback", json=feedback).status_code == 404
    batch = {"model": "secret", "dataset": mine["dataset_id"]}
    assert people.ben.post("/predict/batch", json=batch).status_code == 404
    assert refused_paths(train(people.ben, mine["dataset_id"], "bens"))[0] == "/dataset"
    assert refused_paths(schedule(people.ben, mine["dataset_id"], "bens"))[0] == "/train/dataset"


def test_lists_hold_ones_own(people: People) -> None:
    lists = (("/models", "name"), ("/jobs", "id"), ("/datasets", "id"), ("/schedules", "name"))
    for path, name in lists:
        assert people.ben.get(path).json()["data"] == []
        anna = [thing[name] for thing in people.anna.get(path).json()["data"]]
        admin = [thing[name] for thing in people.admin.get(path).json()["data"]]
        assert anna
        assert set(anna) <= set(admin)
    assert people.anna.get("/models").json()["data"][0]["owner"] == "anna"


def test_an_owner_hears_of_own_things_only(people: People) -> None:
    mine = hers(people)
    wanted = {"url": "https://hooks.example.org/b", "events": ["alias.moved", "job.cancelled"]}
    bens = people.ben.post("/webhooks", json=wanted).json()
    people.anna.put("/models/secret/sharing", json={"with": ["ben"]})
    people.anna.put("/models/secret/aliases/next", json={"version": 1})
    people.anna.delete("/models/secret/aliases/next")
    people.anna.put("/models/secret/sharing", json={"with": []})
    assert people.ben.get(f"/webhooks/{bens['id']}/deliveries").json()["data"] == []
    hers_told = people.anna.get(f"/webhooks/{mine['webhook_id']}/deliveries").json()["data"]
    assert hers_told[0]["subject"] == "secret/next"
    ids = [hook["id"] for hook in people.ben.get("/webhooks").json()["data"]]
    assert ids == [bens["id"]]
    assert people.ben.delete(f"/webhooks/{bens['id']}").status_code == 204
    assert people.app.get("/webhooks").status_code == 403


def test_a_key_for_predictions_without_an_owner_predicts_with_all(people: People) -> None:
    assert people.app.post("/predict", json=PREDICT).status_code == 200
    text = people.made("ben's app", Scope.PREDICT, owner="ben")
    with people.client(text) as bens_app:
        assert bens_app.post("/predict", json=PREDICT).status_code == 404


def test_the_same_bytes_are_each_owners_own(people: People) -> None:
    first = upload(people.anna)
    second = upload(people.ben)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] != second.json()["id"]
    assert upload(people.ben).json()["id"] == second.json()["id"]
    assert people.ben.delete(f"/datasets/{second.json()['id']}").status_code == 204
    assert people.anna.get(f"/datasets/{first.json()['id']}/rows").status_code == 200


def test_a_name_is_its_first_owners(people: People) -> None:
    dataset = upload(people.ben).json()["id"]
    answered(train(people.ben, dataset, "secret"), 403)
    assert train(people.ben, dataset, "bens").status_code == 202
    assert train(people.anna, hers(people)["dataset_id"], "bens").status_code == 403
    assert people.anna.get("/models/bens").status_code == 404


def test_what_is_shared_can_be_read_and_not_changed(people: People) -> None:
    mine = hers(people)
    dataset, job = f"/datasets/{mine['dataset_id']}", f"/jobs/{mine['job_id']}"
    paths = ("/models/secret", dataset, job)
    for path in paths:
        shared = people.anna.put(f"{path}/sharing", json={"with": ["ben"]})
        assert shared.json() == {"with": ["ben"]}
        assert people.ben.get(path).status_code == 200
    wait_until(lambda: people.ben.post("/predict", json=PREDICT).status_code == 200)
    assert people.ben.get("/models/secret/versions/1/card").status_code == 200
    evaluation = {"dataset": mine["dataset_id"]}
    assert people.ben.post("/models/secret/evaluate", json=evaluation).status_code == 202
    own = [job["id"] for job in people.ben.get("/jobs").json()["data"]]
    assert mine["job_id"] in own
    for method, path, body in (
        ("DELETE", "/models/secret", None),
        ("DELETE", "/models/secret/versions/1", None),
        ("PUT", "/models/secret/aliases/champion", {"version": 1}),
        ("PUT", "/models/secret/sharing", {"with": ["*"]}),
        ("POST", "/feedback", {"model": "secret", "inputs": PREDICT["inputs"], "truth": [1e6]}),
        ("DELETE", dataset, None),
        ("POST", f"{job}/cancel", None),
        ("POST", f"{job}/resume", None),
    ):
        answered(people.ben.request(method, path, json=body), 403)
    for path in paths:
        assert people.anna.put(f"{path}/sharing", json={"with": []}).json() == {"with": []}
        assert people.ben.get(path).status_code == 404
    wait_until(lambda: people.ben.post("/predict", json=PREDICT).status_code == 404)
    people.anna.put("/models/secret/sharing", json={"with": ["*"]})  # everybody
    assert people.ben.get("/models/secret").status_code == 200
    people.anna.put("/models/secret/sharing", json={"with": []})
    for wrong in ({"with": [""]}, {"with": "ben"}, {"with": ["a\nb"]}, {}):
        assert people.anna.put("/models/secret/sharing", json=wrong).status_code == 422


def test_a_key_makes_as_many_requests_as_it_may(people: People) -> None:
    people.service.app.state.key_ring._rates = RateLimit(clock=lambda: 0.0)  # no token comes back
    with people.client(people.made("slow", Scope.TRAIN, requests_per_minute=60)) as slow:
        assert slow.get("/models").status_code == 200
        refused = answered(slow.get("/models"), 429)
        assert refused.headers["Retry-After"] == "1"
        assert people.anna.get("/models").status_code == 200, "others go on"


def test_an_owner_stores_and_queues_as_much_as_the_key_may(people: People) -> None:
    known = upload(people.anna).json()["id"]
    with people.service.context.database.read() as session:
        taken = select(DatasetRow.stored_bytes).where(DatasetRow.id == known)
        most = session.scalars(taken).one() + 500
    text = people.made("small", Scope.TRAIN, stored_bytes=most, queued_jobs=2)
    with people.client(text) as small:
        dataset = upload(small).json()["id"]
        answered(upload(small, TABLE + b"5,10\n"), 413)
        jobs = [train(small, dataset, f"small-{i}") for i in range(3)]
        assert [job.status_code for job in jobs] == [202, 202, 429]
        assert int(jobs[2].headers["Retry-After"]) > 0
        small.post(f"/jobs/{jobs[0].json()['id']}/cancel")
        assert train(small, dataset, "small-3").status_code == 202
        for job in small.get("/jobs", params={"status": "queued"}).json()["data"]:
            small.post(f"/jobs/{job['id']}/cancel")
        assert small.delete(f"/datasets/{dataset}").status_code == 204
        assert upload(small, TABLE + b"5,10\n").status_code == 201


def test_the_audit_log_says_who_did_what(people: People) -> None:
    dataset = upload(people.anna, TABLE + b"9,18\n")
    request_id = dataset.headers["X-Request-ID"]
    identifier = dataset.json()["id"]
    people.anna.put(f"/datasets/{identifier}/sharing", json={"with": ["ben"]})
    people.ben.delete(f"/datasets/{identifier}")  # refused: no line
    people.anna.delete(f"/datasets/{identifier}")
    lines = people.admin.get("/audit", params={"object": identifier}).json()["data"]
    assert [line["action"] for line in lines] == [
        "dataset.delete", "dataset.share", "dataset.create",
    ]  # fmt: skip
    assert {(line["actor"], line["owner"]) for line in lines} == {("anna", "anna")}
    assert lines[1]["details"] == {"with": ["ben"]}
    assert lines[2]["request_id"] == request_id
    assert lines[2]["key"].startswith("key_")
    assert people.anna.get("/audit").status_code == 403


def test_without_keys_all_is_everybodys(trained: Path, tmp_path: Path) -> None:
    """What was made before there were keys is seen by whoever gets one."""
    shutil.copytree(trained, tmp_path / "data")
    with serving(tmp_path / "data") as service:
        dataset = upload(service.http).json()
        assert "owner" not in dataset
        _, text = Keys(service.context.database).create("late", Scope.TRAIN)
        wait_until(lambda: service.http.get("/models").status_code == 401)
        with httpx.Client(base_url=service.url, headers=bearer(text), timeout=120) as late:
            assert late.get(f"/datasets/{dataset['id']}").status_code == 200
            assert late.get("/models/price").status_code == 200
            assert late.delete(f"/datasets/{dataset['id']}").status_code == 204
