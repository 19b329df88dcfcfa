"""A training is preceded by what was read, and by a question if that is doubtful."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from core.names import MODEL_NAME, name_advice
from credence.client import Client
from credence.commands.before_training import no_column
from credence.exceptions import CredenceAPIError
from credence.fixes import describe, joined
from credence.model_name import problem
from tests.credence.running import Service, at_terminal, credence

TINY = ["--hidden", "4", "--epochs", "2", "--set", "pruning=[]"]


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 rows of numbers, in which −999 stands for a missing temperature: a warning."""
    path = tmp_path_factory.mktemp("doubtful") / "weather.csv"
    rows = [f"{-999 if i % 17 == 3 else f'{i * 7 % 31}.5'},{i * i % 53 / 4}" for i in range(80)]
    path.write_text("\n".join(["temperature,y", *rows, ""]))
    return path


def unwrapped(text: str) -> str:
    """A message that is printed in a box, on one line."""
    return " ".join(text.replace("│", " ").split())


def trained_on(service: Service, stdout: str) -> dict[str, Any]:
    """The data set of the job whose id a command printed."""
    with Client(service.url) as client:
        return dict(client.dataset(client.job(stdout.strip())["request"]["dataset"]))


def test_a_wrong_target_is_noticed_before_an_upload(table: Path) -> None:
    done = credence("train", str(table), "--target", "knid", url="http://127.0.0.1:1")
    assert done.returncode == 2  # and not 3: nobody listens there
    said = "no column 'knid': did you mean 'kind'? The columns are x0, x1, kind, y"
    assert said in unwrapped(done.stderr)


@pytest.mark.parametrize("command", ["train", "compare"])
def test_a_wrong_name_is_noticed_before_an_upload(table: Path, command: str) -> None:
    options = [command, str(table), "--target", "y", "--name", "Preise 2026"]
    done = credence(*options, url="http://127.0.0.1:1")
    assert done.returncode == 2  # and not 3: nobody listens there
    assert (
        "model 'Preise 2026': use lower-case letters, digits, '.', '_' and '-', such as "
        "'preise-2026'"
    ) in unwrapped(done.stderr)


@pytest.mark.parametrize(
    "name", ["Preise 2026", "-a-", "größe", "", "a" * 64, "a\n", "../a", "v1.2_x", "9", "a" * 63]
)
def test_a_name_is_right_for_the_client_if_it_is_for_the_service(
    service: Service, name: str
) -> None:
    said = problem(name)
    assert (said is None) == (re.fullmatch(MODEL_NAME, name) is not None)
    if said is not None:
        assert said == name_advice(name)
        near = said.partition("such as '")[2].partition("'")[0]
        assert problem(near) is None
        with Client(service.url) as client, pytest.raises(CredenceAPIError) as refused:
            client.submit_train({"model": name, "dataset": "ds_none", "target": "y"})
        assert [(one.path, one.message) for one in refused.value.errors] == [("/model", said)]


def test_a_wrong_target_of_a_data_set_is_noticed_before_a_training(
    service: Service, table: Path
) -> None:
    uploaded = credence("datasets", "upload", str(table), "--json", url=service.url)
    dataset = json.loads(uploaded.stdout)["id"]
    for command in ("train", "compare"):
        done = credence(command, dataset, "--target", "Y", url=service.url)
        assert done.returncode == 2
        assert "did you mean 'y'?" in unwrapped(done.stderr)


def test_only_a_near_name_is_proposed() -> None:
    assert "did you mean" not in str(no_column("zzzz", ["price", "size"]))
    many = str(no_column("x", [f"column_{i}" for i in range(100)]))
    assert many.endswith("column_19 …")


def test_a_training_shows_what_was_read_and_keeps_its_output_clean(
    service: Service, table: Path
) -> None:
    done = credence("train", str(table), "--target", "y", "--json", *TINY, url=service.url)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["version"]
    assert "read as csv" in done.stderr
    assert "even, odd" in done.stderr
    assert "the target" in done.stderr


def test_options_of_the_file_reach_the_service(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "caret.csv"
    path.write_text("a^y\n" + "".join(f"{i % 7}.5^{i % 5}.25\n" for i in range(40)))
    done = credence("datasets", "upload", str(path), "--delimiter", "^", url=service.url)
    assert done.returncode == 0, done.stderr
    assert "'^' between cells" in done.stdout
    dataset = done.stdout.split(" · ")[0]
    again = credence("train", dataset, "--target", "y", "--delimiter", "^", url=service.url)
    assert again.returncode == 2
    assert "credence datasets fix ds_" in unwrapped(again.stderr)


def test_without_a_terminal_warnings_are_printed_and_the_training_runs(
    service: Service, doubtful: Path
) -> None:
    train = ["train", str(doubtful), "--target", "y", "--no-follow", *TINY]
    done = credence(*train, url=service.url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("job_")
    assert "1 warning" in done.stderr
    assert "--column temperature --missing -999" in done.stderr


@pytest.mark.parametrize("answer", ["y\n", "\n"])
def test_at_a_terminal_it_asks_and_trains(service: Service, doubtful: Path, answer: str) -> None:
    train = ["train", str(doubtful), "--target", "y", "--no-follow", *TINY]
    screen = at_terminal(*train, url=service.url, typed=answer)
    assert "Train? [Y/n/f], f = fix one by one" in screen.text
    assert screen.returncode == 0, screen.text
    assert trained_on(service, screen.stdout)["columns"][0]["missing"] == 0


def test_no_trains_nothing(service: Service, doubtful: Path) -> None:
    train = ["train", str(doubtful), "--target", "y", "--no-follow", *TINY]
    screen = at_terminal(*train, url=service.url, typed="n\n")
    assert screen.returncode == 1
    assert screen.stdout == ""
    assert "not trained; ds_" in screen.text


def test_fixes_are_applied_one_by_one_and_shown_again(service: Service, doubtful: Path) -> None:
    train = ["train", str(doubtful), "--target", "y", "--no-follow", *TINY]
    screen = at_terminal(*train, url=service.url, typed="f\ny\n")
    assert screen.returncode == 0, screen.text
    assert "temperature: missing -999\n  Apply? [Y/n]" in screen.text
    assert screen.text.count("read as csv") == 2
    assert trained_on(service, screen.stdout)["columns"][0]["missing"] == 5


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sentinel of `doubtful`, and a category whose spellings differ: read as one."""
    path = tmp_path_factory.mktemp("mixed") / "weather.csv"
    rows = [
        f"{-999 if i % 17 == 3 else f'{i * 7 % 31}.5'},{('Neubau', 'neubau', 'Altbau')[i % 3]},"
        f"{i * i % 53 / 4}"
        for i in range(80)
    ]
    path.write_text("\n".join(["temperature,Art,y", *rows, ""]))
    return path


def test_what_undoes_a_reading_is_marked_and_no_fix(service: Service, mixed: Path) -> None:
    train = ["train", str(mixed), "--target", "y", "--no-follow", *TINY]
    screen = at_terminal(*train, url=service.url, typed="f\ny\n\n")
    assert screen.returncode == 0, screen.text
    assert screen.text.count("Apply?") == 1
    lines = [line.strip() for line in screen.text.splitlines()]
    undoing = [line for line in lines if line.endswith("--column Art --format exact")]
    assert undoing
    assert all(line.startswith("if that is wrong: credence datasets fix") for line in undoing)
    assert "Train? [Y/n]: " in screen.text  # the second time there is nothing to fix
    levels = trained_on(service, screen.stdout)["columns"][1]["levels"]
    assert sorted(levels) == ["Altbau", "Neubau"]


def test_a_finding_that_is_chosen_by_number_says_what_it_does(
    service: Service, mixed: Path
) -> None:
    uploaded = credence("datasets", "upload", str(mixed), "--json", url=service.url)
    dataset = json.loads(uploaded.stdout)
    codes = [finding["code"] for finding in dataset["findings"]]
    case, sentinel = (str(codes.index(code) + 1) for code in ("case", "sentinel"))
    chosen = ["--finding", case, "--finding", sentinel]
    done = credence("datasets", "fix", dataset["id"], *chosen, url=service.url)
    assert done.stderr.splitlines() == [
        f"finding {case}: undoes how the table was read: Art: format exact",
        f"finding {sentinel}: temperature: missing -999",
    ]


def test_yes_does_not_ask(service: Service, doubtful: Path) -> None:
    train = ["train", str(doubtful), "--target", "y", "--no-follow", "--yes", *TINY]
    screen = at_terminal(*train, url=service.url, typed="")
    assert screen.returncode == 0, screen.text
    assert "1 warning" in screen.text
    assert "Train?" not in screen.text


def test_a_data_set_is_fixed_by_the_command_that_is_printed(
    service: Service, doubtful: Path
) -> None:
    uploaded = credence("datasets", "upload", str(doubtful), url=service.url).stdout
    (command,) = [line.split() for line in uploaded.splitlines() if "credence datasets fix" in line]
    for way in (command[1:], [*command[1:4], "--finding", "1"]):
        done = credence(*way, url=service.url)
        assert done.returncode == 0, done.stderr
        assert "missing: '-999'" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give --column NAME, --finding NUMBER, or how to read the file"),
        (["--column", "y"], "--column goes with"),
        (["--finding", "1", "--type", "text"], "--column goes with"),
        (["--finding", "9"], "no finding 9"),
    ],
)
def test_a_fix_names_a_column_or_a_finding(
    service: Service, doubtful: Path, options: list[str], message: str
) -> None:
    uploaded = credence("datasets", "upload", str(doubtful), "--json", url=service.url)
    done = credence("datasets", "fix", json.loads(uploaded.stdout)["id"], *options, url=service.url)
    assert done.returncode == 2
    assert message in unwrapped(done.stderr)


def test_fixes_of_one_column_are_merged() -> None:
    first = {"columns": [{"name": "a", "missing": ["-"]}, {"name": "b", "use": False}]}
    second = {"columns": [{"name": "a", "type": "number", "missing": ["-999"]}]}
    assert joined([first, second])[0] == [
        {"name": "a", "type": "number", "missing": ["-", "-999"]},
        {"name": "b", "use": False},
    ]


def test_a_fix_is_said_in_words() -> None:
    columns = [{"name": "a", "type": "number", "missing": ["-", "n/a ?"], "use": False}]
    options = {"decimal": ",", "header": False, "skip": None}
    said = "a: type number, missing - 'n/a ?', leave out of the features"
    assert describe({"columns": columns}) == said
    assert describe({"columns": [], "options": options}) == "the file: decimal ,, no header"


def test_a_name_is_near_whatever_its_case() -> None:
    error: typer.BadParameter = no_column("PRIZE", ["Price", "size"])
    assert "did you mean 'Price'?" in str(error)
