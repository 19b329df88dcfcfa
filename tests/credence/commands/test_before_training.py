"""A training is preceded by what was read, and by a question if that is doubtful."""

import json
from pathlib import Path
from typing import Any

import pytest

from credence.client import Client
from tests.credence.invoking import command, printed, words
from tests.credence.running import Screen, Service, at_terminal

TINY = ["--hidden", "4", "--epochs", "2", "--set", "pruning=[]"]


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
    train = ["train", str(file), "--target", "y", "--no-follow", *options, *TINY]
    return at_terminal(*train, url=service.url, typed=typed)


def trained_on(client: Client, stdout: str) -> list[Any]:
    """The columns of the data set of the job whose id a command printed."""
    return client.dataset(client.job(stdout.strip())["request"]["dataset"])["columns"]


@pytest.mark.parametrize("verb", ["train", "compare"])
def test_a_wrong_target_of_a_data_set_is_noticed_before_a_training(
    service: Service, uploaded: dict[str, Any], verb: str
) -> None:
    done = command(verb, uploaded["id"], "--target", "Y", url=service.url)
    assert done.exit_code == 2
    assert "did you mean 'y'?" in words(done.stderr)


def test_without_a_terminal_warnings_are_printed_and_the_training_runs(
    service: Service, doubtful: Path
) -> None:
    done = command("train", str(doubtful), "--target", "y", "--no-follow", *TINY, url=service.url)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("job_")
    assert "--column temperature --missing -999" in done.stderr


def test_at_a_terminal_it_asks_and_trains_or_does_not(
    service: Service, client: Client, doubtful: Path
) -> None:
    yes = asked(service, doubtful, "\n")
    assert "Train? [Y/n/f]" in yes.text
    assert yes.returncode == 0, yes.text
    assert trained_on(client, yes.stdout)[0]["missing"] == 0
    no = asked(service, doubtful, "n\n")
    assert (no.returncode, no.stdout) == (1, "")
    unasked = asked(service, doubtful, "", "--yes")
    assert unasked.returncode == 0, unasked.text
    assert "Train?" not in unasked.text
