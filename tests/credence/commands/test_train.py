import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import typer

from core.names import model_name_of
from credence.commands.options import column_list
from credence.commands.setting_names import check_settings
from credence.commands.train import assign, build_request, named_target, parse_setting
from credence.train_settings import CompareBody
from credence.types import Json
from tests.credence.commands.test_before_training import unwrapped
from tests.credence.running import CREDENCE, Service, credence, environment

TINY = ["--hidden", "4", "--epochs", "2", "--set", "pruning=[0.5]"]


def test_settings_are_json_or_else_text() -> None:
    assert parse_setting("method.kl.weight=0.1") == ("method.kl.weight", 0.1)
    assert parse_setting("pruning=[0.5]") == ("pruning", [0.5])
    assert parse_setting("method.estimator=weight") == ("method.estimator", "weight")
    with pytest.raises(typer.BadParameter, match="write PATH=VALUE"):
        parse_setting("epochs")


def test_bounds_are_set_beside_the_name_of_the_target() -> None:
    request = build_request({"target": "y"}, ["target.lower=0", "target.integer=true"])
    assert request == {"target": {"name": "y", "lower": 0, "integer": True}}


NOBODY = "http://127.0.0.1:1"  # a command that asks it ends with 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--task", "regresion"], "did you mean 'regression'?"),
        (["--method", "swga"], "did you mean 'swag'?"),
        (["--likelihood", "studnet"], "did you mean 'student'?"),
        (["--effort", "quik"], "did you mean 'quick'?"),
        (["--features", "x0,knid"], "no column 'knid': did you mean 'kind'?"),
        (["--groups", "knd"], "no column 'knd': did you mean 'kind'?"),
        (["--set", "training.epocs=3"], "unknown setting 'epocs': did you mean 'epochs'?"),
        (["--set", "method.kind=swga"], "method.kind: unknown value 'swga': did you mean 'swag'?"),
        (["--taks", "regression"], "--task"),
    ],
)
def test_a_slip_is_named_before_anything_is_uploaded(
    table: Path, options: list[str], said: str
) -> None:
    done = credence("train", str(table), "--target", "y", *options, url=NOBODY)
    assert done.returncode == 2
    assert said in unwrapped(done.stderr)


def test_what_is_like_nothing_known_is_left_to_the_service() -> None:
    check_settings({"training": {"quantum": 1}, "pruning": [0.5], "metadata": {"epocs": 1}})
    with pytest.raises(typer.BadParameter, match="did you mean 'swag'"):
        check_settings({"methods": ["bbb", "swga"]}, CompareBody)
    check_settings(
        {"methods": ["bbb", {"kind": "swag"}], "out_of_distribution": "ds_1"}, CompareBody
    )


def test_features_are_separated_by_commas_or_given_once_each() -> None:
    assert column_list(["a, b", '"c,d"']) == ["a", "b", "c,d"]
    assert column_list([]) is None


def test_the_words_of_an_option_are_completed() -> None:
    words = "credence train x.csv --method s"
    env = environment(COMP_WORDS=words, COMP_CWORD="4", _CREDENCE_COMPLETE="complete_bash")
    done = subprocess.run(CREDENCE, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["swag", "sgld"]


def test_several_targets_become_one_model(service: Service, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x, noise = random.normal(size=120), random.normal(size=120)
    columns = {"x": x, "flour": 3 + x + noise, "butter": 5 - x + noise}
    path = tmp_path / "bakery.csv"
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    path.write_text("\n".join(lines))
    targets = ["--target", "flour", "--target", "butter"]
    done = credence("train", str(path), *targets, *TINY, url=service.url)
    assert done.returncode == 0, done.stderr
    assert "Targets, and their correlation" in done.stdout
    assert "all inside their joint 90% intervals" in done.stdout
    rows = tmp_path / "rows.csv"
    rows.write_text("x\n0\n1\n")
    answer = credence("predict", "bakery", str(rows), "--json", url=service.url)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["targets"].keys() == {"flour", "butter"}
    shown = credence("predict", "bakery", str(rows), "--format", "table", url=service.url)
    assert "butter" in shown.stdout
    assert "90% together" in shown.stdout
    wrong = credence("train", str(path), "--target", "flour", "--target", "x9", url=service.url)
    assert wrong.returncode == 1
    assert "no column 'x9'" in wrong.stderr


def test_a_path_builds_the_objects_on_its_way() -> None:
    request: Json = {"training": {"epochs": 5}}
    assign(request, "training.seed", 1)
    assign(request, "method.kl.weight", 0.1)
    assert request == {"training": {"epochs": 5, "seed": 1}, "method": {"kl": {"weight": 0.1}}}
    with pytest.raises(typer.BadParameter, match="'epochs' has a value already"):
        assign(request, "training.epochs.more", 1)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("Concrete (v2).csv", "concrete-v2"),
        ("a.b.csv", "a"),
        ("—.csv", "model"),
        ("x" * 99, "x" * 63),
    ],
)
def test_a_model_is_named_after_its_data(data: str, name: str) -> None:
    assert model_name_of(data) == name


def test_a_file_becomes_a_model(service: Service, table: Path) -> None:
    done = credence("train", str(table), "--target", "y", *TINY, "--alias", "new", url=service.url)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"small-table version \d+ \(new\): regression of 'y' from 3 features", done.stdout
    )
    assert "log lik." in done.stdout
    assert "50%" in done.stdout  # the pruned variant
    assert "60 rows of Small Table.csv" in done.stderr


def test_no_follow_prints_the_job_for_the_next_command(service: Service, table: Path) -> None:
    options = ["--target", "y", "--name", "later", "--no-follow", "--hidden", "4", "--epochs", "2"]
    options += ["--task", "regression", "--method", "map", "--features", "x1,kind"]
    options += ["--likelihood", "homoscedastic"]
    done = credence("train", str(table), *options, url=service.url)
    job = done.stdout.strip()
    assert done.returncode == 0, done.stderr
    assert job.startswith("job_")
    watched = credence("jobs", "watch", job, url=service.url)
    assert watched.returncode == 0, watched.stderr
    assert "later version 1" in watched.stdout
    shown = credence("jobs", "show", job, "--json", url=service.url)
    request = json.loads(shown.stdout)["request"]
    assert request["network"]["hidden"] == [4]
    assert request["task"] == "regression"
    assert request["method"]["kind"] == "map"
    assert [feature["name"] for feature in request["features"]] == ["x1", "kind"]
    assert request["likelihood"] == "homoscedastic"


def test_a_refused_request_exits_with_1_and_names_the_field(service: Service, table: Path) -> None:
    done = credence("train", str(table), "--target", "y", "--epochs", "0", url=service.url)
    assert done.returncode == 1
    assert "/training/epochs" in done.stderr
    assert done.stdout == ""


def test_without_a_target_the_columns_are_named(table: Path) -> None:
    with pytest.raises(
        typer.BadParameter, match="name the column to predict, one of x0, x1, kind, y"
    ) as caught:
        named_target(None, str(table), {})
    assert caught.value.exit_code == 2


def test_neither_file_nor_data_set_is_wrong_use(service: Service) -> None:
    done = credence("train", "missing.csv", "--target", "y", url=service.url)
    assert done.returncode == 2
    assert "neither a file nor the id" in done.stderr


def test_a_failed_job_exits_with_4_and_its_reason(service: Service, table: Path) -> None:
    wild = ["--set", "training.learning_rate=100.0", "--set", "training.optimizer=sgd"]
    wild += ["--set", "training.gradient_clip=1000000.0", "--set", "training.epochs=200"]
    done = credence("train", str(table), "--target", "y", "--name", "wild", *wild, url=service.url)
    assert done.returncode == 4, done.stdout
    assert "diverged" in done.stderr
