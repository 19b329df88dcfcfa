"""`credence train`, and what it asks before."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from credence.client import Client
from tests.credence.invoking import command, printed, words
from tests.credence.running import Screen, Service, at_terminal

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


BRIEF = ["--hidden", "4", "--epochs", "2", "--set", "pruning=[]"]


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 rows: −999 stands for a missing temperature, and a category has two spellings."""
    path = tmp_path_factory.mktemp("doubtful") / "weather.csv"
    rows = [
        f"{-999 if i % 17 == 3 else f'{i * 7 % 31}.5'},{('Neubau', 'neubau', 'Altbau')[i % 3]},"
        f"{i * i % 53 / 4}"
        for i in range(80)
    ]
    path.write_text("\n".join(["temperature,Art,y", *rows, ""]))
    return path


@pytest.fixture(scope="module")
def uploaded(service: Service, doubtful: Path) -> dict[str, Any]:
    return dict(json.loads(printed("datasets", "upload", str(doubtful), "--json", url=service.url)))


def asked(service: Service, file: Path, typed: str, *options: str) -> Screen:
    """What a training's question at a terminal comes to, with this answer."""
    train = ["train", str(file), "--target", "y", "--no-follow", *options, *BRIEF]
    return at_terminal(*train, url=service.url, typed=typed)


def trained_on(client: Client, stdout: str) -> list[Any]:
    """The columns of the data set of the job whose id a command printed."""
    return client.dataset(client.job(stdout.strip())["request"]["dataset"])["columns"]


@pytest.mark.parametrize("verb", ["train", "compare"])
def test_a_wrong_target_is_noticed(service: Service, uploaded: dict[str, Any], verb: str) -> None:
    done = command(verb, uploaded["id"], "--target", "Y", url=service.url)
    assert done.exit_code == 2
    assert "did you mean 'y'?" in words(done.stderr)


def test_without_a_terminal_it_warns_and_trains(service: Service, doubtful: Path) -> None:
    done = command("train", str(doubtful), "--target", "y", "--no-follow", *BRIEF, url=service.url)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("job_")
    assert "--column temperature --missing -999" in done.stderr


def test_at_a_terminal_it_asks(service: Service, client: Client, doubtful: Path) -> None:
    yes = asked(service, doubtful, "\n")
    assert "Train? [Y/n/f]" in yes.text
    assert yes.returncode == 0, yes.text
    assert trained_on(client, yes.stdout)[0]["missing"] == 0
    no = asked(service, doubtful, "n\n")
    assert (no.returncode, no.stdout) == (1, "")
    unasked = asked(service, doubtful, "", "--yes")
    assert unasked.returncode == 0, unasked.text
    assert "Train?" not in unasked.text
