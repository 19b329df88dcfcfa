"""The command line: lists, exits, keys, sources, schedules, webhooks."""

import csv
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from core.webhooks.event_types import EventType
from credence.client import Client
from credence.types import Version, WebhookEvent
from tests.core.webhooks.receiving import Receiving
from tests.credence.invoking import NOBODY, command, printed
from tests.credence.running import Service, credence, environment
from tests.waiting import wait_until

HEAVY = ("torch", "pandas", "polars", "sklearn", "fastapi", "pyarrow", "numpy", "sqlalchemy")
PROBE = f"""
import sys
from credence.cli import main
try:
    main()
finally:
    print(*(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)
"""


def test_no_service_exits_with_3_and_says_what_to_do() -> None:
    done = credence("jobs", "list", url=NOBODY)
    assert done.returncode == 3
    assert f"no answer from {NOBODY}" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_starts_with_little(service: Service, version: Version) -> None:
    for arguments, stdin in ((["--help"], ""), (["predict", "small"], "kind,x0,x1\nodd,1,2\n")):
        done = subprocess.run(
            [sys.executable, "-c", PROBE, *arguments],
            env=environment(CREDENCE_URL=service.url),
            input=stdin,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout
        assert done.stderr.strip() == ""


@pytest.mark.parametrize("kind", ["jobs", "models", "datasets"])
def test_lists_are_tables_or_json(service: Service, version: Version, kind: str) -> None:
    every = ("--limit", "1000")  # other tests have made some, too
    assert "small" in printed(kind, "list", *every, url=service.url).lower()
    assert json.loads(printed(kind, "list", "--json", url=service.url))


def test_a_model_shows_its_variants(service: Service, version: Version, tmp_path: Path) -> None:
    shown = printed("models", "show", "small", url=service.url)
    assert "a linear model predicted the held-out rows " in shown
    assert "50%" in shown
    assert str(version["num_weights"]) in shown
    card = printed("models", "card", "small", url=service.url)
    assert "54 for training, 6 held out" in card
    assert "network.hidden" in card
    assert "network.activation" not in card  # nobody asked for it
    path = tmp_path / "card.html"
    printed("models", "card", "small", "1", "--html", str(path), url=service.url)
    page = path.read_text()
    assert "src=" not in page.partition("<body>")[0]
    assert "plotly.js (basic" in page


def test_an_alias_is_set_and_removed(service: Service, version: Version) -> None:
    show = ["models", "show", "small", "--version", "best"]
    alias = ["models", "alias", "small", "best"]
    printed(*alias, "1", url=service.url)
    assert "(best)" in printed(*show, url=service.url)
    printed(*alias, "--remove", url=service.url)
    assert command(*show, url=service.url).exit_code == 1
    assert command(*alias, url=service.url).exit_code == 2


def test_nothing_is_deleted_without_consent(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "gone.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    uploaded = printed("datasets", "upload", str(path), "--json", url=service.url)
    dataset = json.loads(uploaded)["id"]
    asked = command("datasets", "delete", dataset, url=service.url, stdin="n\n")
    assert asked.exit_code == 1
    printed("datasets", "show", dataset, url=service.url)
    printed("datasets", "delete", dataset, "--yes", url=service.url)
    gone = command("datasets", "show", dataset, url=service.url)
    assert gone.exit_code == 1
    assert dataset in gone.stderr


TINY = ["--hidden", "4", "--epochs", "3"]


def test_a_file_becomes_a_picture(service: Service, table: Path, tmp_path: Path) -> None:
    far, picture = tmp_path / "far.csv", tmp_path / "methods.html"
    with far.open("w", newline="") as file:
        rows = [[50 + i, -50 - i, "odd"] for i in range(20)]
        csv.writer(file).writerows([["x0", "x1", "kind"], *rows])
    options = ["--target", "y", "--name", "several", "--methods", "map,bbb", *TINY]
    options += ["--out-of-distribution", str(far), "--picture", str(picture)]
    header, *lines = printed("compare", str(table), *options, url=service.url).splitlines()
    assert header.split()[:3] == ["method", "version", "log_likelihood"]
    assert {"ood_auroc", "train_seconds", "predict_ms", "bytes"} < set(header.split())
    assert [line.split()[0] for line in lines[:2]] == ["map", "bbb"]
    assert sum("best" in line.split() for line in lines[3:5]) == 1
    assert "<h1>several</h1>" in picture.read_text()


def test_an_empty_database_gets_its_tables_and_a_newer_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    for _ in range(2):  # the second time there is nothing to do
        printed("migrate", CREDENCE_DATABASE_URL=f"sqlite:///{path}")
    with sqlite3.connect(path) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master")
        assert {"jobs", "datasets", "versions"} <= {name for (name,) in tables}
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("UPDATE schema_compatibility SET compatible_from = '9999'")
    done = command("migrate", CREDENCE_DATABASE_URL=f"sqlite:///{path}")
    assert done.exit_code == 2
    assert "9999" in done.stderr


def keys(data_dir: Path, *arguments: str) -> list[str]:
    """The lines that a command prints; it must succeed."""
    return printed("keys", *arguments, "--data-dir", str(data_dir)).splitlines()


def test_a_key_is_printed_once_listed_and_revoked(tmp_path: Path) -> None:
    (text,) = keys(tmp_path, "create", "--name", "laptop", "--scope", "predict")
    assert text.startswith("cred_")
    listed = "\n".join(keys(tmp_path, "list", "--json"))
    assert text not in listed
    (key,) = json.loads(listed)
    assert (key["name"], key["scope"], key["revoked_at"]) == ("laptop", "predict", None)
    keys(tmp_path, "revoke", key["id"], "--yes")
    again = command("keys", "revoke", key["id"], "--yes", "--data-dir", str(tmp_path))
    assert again.exit_code == 1
    wrong = command("keys", "create", "--name", "x", "--scope", "all", "--data-dir", str(tmp_path))
    assert wrong.exit_code == 2
    assert all(scope in wrong.stderr for scope in ("predict", "train", "admin"))


QUICK = {"target": "y", "training": {"epochs": 4}, "network": {"hidden": [8]}, "pruning": []}


def test_a_source_is_added_and_refreshed(service: Service, lake: Path) -> None:
    source = ["--source", f"file://{lake}/pair/*.csv", "--name", "pair"]
    added = json.loads(printed("datasets", "add", *source, "--json", url=service.url))
    same = command("datasets", "refresh", added["id"], url=service.url)
    assert "the same data set" in same.stderr
    (lake / "pair" / "b.csv").write_text("x;y\n5,5;6\n")
    changed = json.loads(printed("datasets", "refresh", added["id"], "--json", url=service.url))
    assert (changed["rows"], changed["refreshed_from"]) == (3, added["id"])


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--database", "shop"],
        ["--source", "s3://b/a", "--database", "x", "--query", "SELECT 1"],
    ],
)
def test_one_kind_of_source_is_asked_for(options: list[str]) -> None:
    done = command("datasets", "add", *options)
    assert done.exit_code == 2
    assert "--source" in done.stderr


@pytest.fixture(scope="module")
def dataset(client: Client, lake: Path) -> str:
    rows = "\n".join(f"{i},{3 * i + i % 7}" for i in range(300))
    (lake / "long.csv").write_text(f"x,y\n{rows}\n")
    return client.read_source("rows", f"file://{lake}/long.csv")["id"]


def test_a_schedule_is_added_and_removed(service: Service, dataset: str, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text(json.dumps(QUICK))
    options = ["--dataset", dataset, "--train", str(request), "--max-loss", "50"]
    when = ["--cron", "0 3 * * *", "--time-zone", "Europe/Paris", "--min-coverage", "0.1"]
    printed("schedules", "add", "nightly", *options, *when, url=service.url)
    (listed,) = json.loads(printed("schedules", "list", "--json", url=service.url))
    assert listed["gate"] == {"metric": "log_likelihood", "max_loss": 50.0, "min_coverage": 0.1}
    assert listed["train"] == {"model": "nightly", "alias": "champion", "dataset": dataset} | QUICK
    ran = printed("schedules", "run", "nightly", url=service.url)
    assert "run 1 of nightly: passed" in ran
    assert "Europe/Paris" in printed("schedules", "show", "nightly", url=service.url)
    printed("schedules", "remove", "nightly", "--yes", url=service.url)
    assert json.loads(printed("schedules", "list", "--json", url=service.url)) == []
    for text in ("{", "[]"):
        request.write_text(text)
        refused = command("schedules", "add", "x", "--train", str(request), "--on-refresh")
        assert refused.exit_code == 2


def failed_job(client: Client) -> str:
    """A training that diverges at once."""
    columns = {"x": [1.0, 2.0, 3.0, 4.0] * 10, "y": [1.0, 2.0, 3.0, 4.0] * 10}
    body = {"model": "m", "data": {"columns": columns}, "target": "y"}
    wild = {"optimizer": "sgd", "learning_rate": 100.0, "gradient_clip": 1e6, "epochs": 20}
    job = client.submit_train(body | {"training": wild})
    return client.wait(job["id"], poll_seconds=0.1)["id"]


def test_a_webhook_is_added(service: Service, client: Client, receiving: Receiving) -> None:
    add = ["webhooks", "add", f"http://127.0.0.1:{receiving.port}/hook", "--event", "job.failed"]
    made = json.loads(printed(*add, "--json", url=service.url))
    receiving.secret = made["secret"]
    listed = printed("webhooks", "list", url=service.url)
    assert made["id"] in listed
    assert made["secret"] not in listed
    job = failed_job(client)
    wait_until(lambda: receiving.types == ["job.failed"])
    assert receiving.messages[0][1]["data"]["id"] == job
    wait_until(lambda: next(client.deliveries(made["id"]))["status"] == "delivered")
    delivery = next(client.deliveries(made["id"]))
    assert delivery["id"] in printed("webhooks", "deliveries", made["id"], url=service.url)
    printed("webhooks", "replay", made["id"], delivery["id"], url=service.url)
    wait_until(lambda: receiving.ids == [delivery["id"]] * 2)
    wait_until(lambda: next(client.deliveries(made["id"]))["attempts"] == 2)
    assert client.webhook(made["id"])["failing_since"] is None
    printed("webhooks", "enable", made["id"], url=service.url)
    printed("webhooks", "remove", made["id"], "--yes", url=service.url)
    assert made["id"] not in printed("webhooks", "list", url=service.url)
    assert made["secret"] not in service.log_file.read_text()


def test_the_client_knows_every_event() -> None:
    assert get_args(WebhookEvent) == tuple(EventType)
