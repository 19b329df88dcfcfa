"""`credence train`, from a file to a model of a real service."""

import json
import re
from pathlib import Path

from tests.credence.invoking import command, printed
from tests.credence.running import Service

TINY = ["--hidden", "4", "--epochs", "2", "--set", "pruning=[0.5]"]


def test_a_file_becomes_a_model(service: Service, table: Path) -> None:
    train = ["train", str(table), "--target", "y", "--alias", "new", *TINY]
    done = command(*train, url=service.url)
    assert done.exit_code == 0, done.stderr
    what = r"small-table version \d+ \(new\): regression of 'y' from 3 features"
    assert re.search(what, done.stdout)
    assert "50%" in done.stdout  # the pruned variant
    assert "read as csv" in done.stderr
    alone = command(*train, "--json", url=service.url)
    assert json.loads(alone.stdout)["version"]  # and nothing else on the standard output
    assert "read as csv" in alone.stderr


def test_no_follow_prints_the_job_for_the_next_command(service: Service, table: Path) -> None:
    options = ["--target", "y", "--name", "later", "--no-follow", "--hidden", "4", "--epochs", "2"]
    options += ["--task", "regression", "--method", "map", "--features", "x1,kind"]
    options += ["--likelihood", "homoscedastic"]
    job = printed("train", str(table), *options, url=service.url).strip()
    assert "later version 1" in printed("jobs", "watch", job, url=service.url)
    request = json.loads(printed("jobs", "show", job, "--json", url=service.url))["request"]
    assert request["network"]["hidden"] == [4]
    assert request["task"] == "regression"
    assert request["method"]["kind"] == "map"
    assert [feature["name"] for feature in request["features"]] == ["x1", "kind"]
    assert request["likelihood"] == "homoscedastic"


def test_a_refused_request_exits_with_1_and_names_the_field(service: Service, table: Path) -> None:
    done = command("train", str(table), "--target", "y", "--epochs", "0", url=service.url)
    assert done.exit_code == 1
    assert "/training/epochs" in done.stderr
    assert done.stdout == ""
    missing = command("train", "missing.csv", "--target", "y", url=service.url)
    assert missing.exit_code == 2


def test_a_failed_job_exits_with_4_and_its_reason(service: Service, table: Path) -> None:
    wild = ["--set", "training.learning_rate=100.0", "--set", "training.optimizer=sgd"]
    wild += ["--set", "training.gradient_clip=1000000.0", "--set", "training.epochs=200"]
    train = ["train", str(table), "--target", "y", "--name", "wild", *wild]
    done = command(*train, url=service.url)
    assert done.exit_code == 4, done.stdout
    assert "diverged" in done.stderr
