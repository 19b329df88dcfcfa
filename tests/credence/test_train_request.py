"""What `credence train` makes of its options, before a service is asked."""

from pathlib import Path

import pytest
import typer

from core.names import model_name_of
from credence.commands.options import column_list
from credence.commands.train import build_request, parse_setting, zoned_time
from tests.credence.invoking import NOBODY, command, words


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "table.csv"
    path.write_text("x0,x1,kind,y\n1,2,odd,3\n4,5,even,6\n")
    return str(path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--target", "knid"], "did you mean 'kind'?"),
        (["--task", "regresion"], "did you mean 'regression'?"),
        (["--method", "swga"], "did you mean 'swag'?"),
        (["--features", "x0,knid"], "did you mean 'kind'?"),
        (["--groups", "knd"], "did you mean 'kind'?"),
        (["--set", "training.epocs=3"], "did you mean 'epochs'?"),
        (["--set", "method.kind=swga"], "did you mean 'swag'?"),
        (["--taks", "regression"], "--task"),
        (["--name", "Preise 2026"], "'preise-2026'"),
    ],
)
def test_a_slip_is_named_before_anything_is_uploaded(
    file: str, options: list[str], said: str
) -> None:
    done = command("train", file, "--target", "y", *options, url=NOBODY)
    assert done.exit_code == 2  # and not 3: nobody was asked
    assert said in words(done.stderr)


def test_settings_are_json_or_else_text() -> None:
    assert parse_setting("method.kl.weight=0.1") == ("method.kl.weight", 0.1)
    assert parse_setting("method.estimator=weight") == ("method.estimator", "weight")
    with pytest.raises(typer.BadParameter):
        parse_setting("epochs")


def test_settings_join_the_short_options() -> None:
    options = {"task": "forecasting", "forecast.horizon": 12, "forecast.key": None}
    request = build_request(options, ["forecast.season=[24,168]", "forecast.horizon=14"])
    assert request == {"task": "forecasting", "forecast": {"horizon": 14, "season": [24, 168]}}
    bounds = build_request({"target": "y"}, ["target.lower=0", "target.integer=true"])
    assert bounds == {"target": {"name": "y", "lower": 0, "integer": True}}
    assert column_list(["a, b", '"c,d"']) == ["a", "b", "c,d"]
    assert column_list([]) is None


@pytest.mark.parametrize(
    ("data", "name"),
    [("Concrete (v2).csv", "concrete-v2"), ("a.b.csv", "a"), ("—.csv", "model")],
)
def test_a_model_is_named_after_its_data(data: str, name: str) -> None:
    assert model_name_of(data) == name
    assert len(model_name_of("x" * 99)) == 63


def test_a_time_zone_is_part_of_the_time() -> None:
    zoned = {"column": "time", "zone": "Europe/Berlin"}
    request = build_request({"forecast.time": zoned_time("time", "Europe/Berlin")}, None)
    assert request == {"forecast": {"time": zoned}}
    assert zoned_time("time", None) == "time"
    with pytest.raises(typer.BadParameter, match="needs --time"):
        zoned_time(None, "Europe/Berlin")
