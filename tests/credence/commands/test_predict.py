import csv
import io
import json
import os
import pty
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from credence.client.arrow import Column, from_stream, to_stream
from credence.client.prediction import Prediction
from credence.commands.files.predictions import write_csv
from credence.commands.prediction_table import print_prediction
from credence.types import Version
from tests.credence.running import CREDENCE, Service, credence, environment

ROWS = "kind,x0,x1,y\nodd,0.5,1.0,9\neven,,2.0,9\nnew,1.5,-1.0,9\n"

pytestmark = pytest.mark.usefixtures("version")


def test_a_pipe_gets_csv_with_a_line_per_row(service: Service) -> None:
    done = credence("predict", "small", "--interval", "0.5", url=service.url, stdin=ROWS)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 3
    for row in rows:
        parts = float(row["aleatoric_variance"]) + float(row["epistemic_variance"])
        assert parts == pytest.approx(float(row["total_variance"]))
        assert float(row["lower_0.5"]) < float(row["mean"]) < float(row["upper_0.5"])
    assert "not features, ignored: y" in done.stderr


def test_columns_of_the_rows_are_kept_to_join_on(service: Service) -> None:
    rows = "number,kind,x0,x1,y\n007,odd,0.5,1.0,9\n=1+1,even,,2.0,9\n"
    done = credence(
        "predict", "small", "--id", "number", "--keep", "y", url=service.url, stdin=rows
    )
    assert done.returncode == 0, done.stderr
    header, *lines = csv.reader(io.StringIO(done.stdout))
    assert header[:3] == ["number", "y", "mean"]
    assert [line[:2] for line in lines] == [["007", "9"], ["'=1+1", "9"]]
    assert "ignored" not in done.stderr
    whole = ["predict", "small", "--with-inputs", "--format", "table"]
    shown = credence(*whole, url=service.url, stdin=rows).stdout
    assert re.search(r"row\s+number\s+kind\s+x0\s+x1\s+y\s+mean", shown.replace("\n", " "))
    wrong = credence("predict", "small", "--id", "nubmer", url=service.url, stdin=rows)
    assert wrong.returncode == 1
    assert "did you mean 'number'?" in wrong.stderr


def test_rows_are_marked_that_are_strange_or_too_uncertain(service: Service) -> None:
    rows = ROWS + "odd,900.0,-900.0,9\n"
    done = credence("predict", "small", "--abstain-above", "1e6", url=service.url, stdin=rows)
    assert done.returncode == 0, done.stderr
    for row in csv.DictReader(io.StringIO(done.stdout)):
        deviation = float(row["total_variance"]) ** 0.5
        assert row["abstained"] == str(deviation > 1e6).lower()
        assert row["out_of_distribution"] in ("true", "false")
        assert float(row["ood_score"]) >= 0
    assert row["out_of_distribution"] == "true"


def test_a_file_gives_what_a_pipe_gives(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS, encoding="utf-8-sig")  # as spreadsheets write it
    piped = credence("predict", "small", "-", url=service.url, stdin=ROWS)
    assert credence("predict", "small", str(path), url=service.url).stdout == piped.stdout


def test_json_is_the_answer_of_the_service(service: Service, version: Version) -> None:
    options = ["--samples", "7", "--seed", "3", "--prune", "0.5", "--version", "1", "--json"]
    done = credence("predict", "small", *options, url=service.url, stdin=ROWS)
    answer = json.loads(done.stdout)
    asked = {key: answer[key] for key in ("model", "version", "samples", "seed", "prune")}
    assert asked == {"model": "small", "version": 1, "samples": 7, "seed": 3, "prune": 0.5}
    assert len(answer["mean"]) == 3


def test_probabilities_quantiles_and_densities_are_columns(service: Service) -> None:
    options = ["--exceeds", "0.5", "--exceeds", "-1", "--quantile", "0.1", "--density", "4"]
    done = credence("predict", "small", *options, url=service.url, stdin=ROWS)
    assert done.returncode == 0, done.stderr
    for row in csv.DictReader(io.StringIO(done.stdout)):
        assert 0 <= float(row["exceeds_0.5"]) <= float(row["exceeds_-1.0"]) <= 1
        assert float(row["quantile_0.1"]) < float(row["mean"])
        assert json.loads(row["density_values"]) == sorted(json.loads(row["density_values"]))
        assert len(json.loads(row["density"])) == 4
    refused = credence("predict", "small", "--density", "1", url=service.url, stdin=ROWS)
    assert refused.returncode != 0
    assert "/density/points" in refused.stderr


def test_a_terminal_gets_a_table(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    asked = ["--exceeds", "0.5", "--quantile", "0.1", "--density", "64"]
    drawn = ["--sampler", "monte_carlo", "--samples", "100"]
    shown = on_terminal(service, "predict", "small", str(path), *asked, *drawn)
    assert "small version 1, 0% pruned, 100 samples" in shown
    assert {"aleatoric", "90%", "interval", "above", "quantile", "density"} <= set(shown.split())
    assert "█" in shown
    assert "!" in shown
    strips = [
        line
        for line in on_terminal(service, "predict", "small", str(path)).splitlines()
        if "●" in line
    ]
    assert len(strips) == 3
    assert all("─" in line for line in strips)


def on_terminal(service: Service, *arguments: str) -> str:
    """What a command prints on a terminal of 160 characters."""
    terminal, stdout = pty.openpty()
    env = environment(CREDENCE_URL=service.url, COLUMNS="160", LINES="50", TERM="dumb")
    command = [*CREDENCE, *arguments]
    with subprocess.Popen(command, env=env, stdout=stdout, stdin=subprocess.DEVNULL) as running:
        os.close(stdout)
        shown = b"".join(_read(terminal))
    os.close(terminal)
    assert running.returncode == 0
    return shown.decode()


def _read(terminal: int) -> Iterator[bytes]:
    """All that is printed: a terminal gives 4 kB at a time, and an error at the end."""
    with suppress(OSError):
        while part := os.read(terminal, 10_000):
            yield part


def test_conformal_intervals_have_columns_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = {
        "mean": 2.0, "aleatoric_variance": 0.5, "epistemic_variance": 0.5, "total_variance": 1.0,
        "lower_0.9": 1.0, "upper_0.9": 3.0,
        "conformal_lower_0.9": 0.5, "conformal_upper_0.9": 3.5,
        "conformal_lower_0.99": None, "conformal_upper_0.99": None, "ood_score": 0.5,
    }  # fmt: skip
    columns = {name: Column("number", [value]) for name, value in numbers.items()}
    columns["out_of_distribution"] = Column("boolean", [False])
    table = from_stream(to_stream(columns))
    table.metadata |= {"model": "m", "version": "1", "prune": "0.0", "samples": "100"}
    write_csv(table, 1)
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["lower_0.9"], row["conformal_lower_0.9"], row["conformal_upper_0.99"]) == (
        "1.0", "0.5", "",
    )  # fmt: skip
    print_prediction(table, 1)
    shown = " ".join(capsys.readouterr().out.split())
    assert "unbounded" in shown
    assert "0.5 to 3.5" in shown


def test_totals_are_shown_and_read_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = {
        "mean": 2.0, "aleatoric_variance": 0.5, "epistemic_variance": 0.5, "total_variance": 1.0,
        "total_mean": 20.0, "total_median": 19.0, "total_mc_error": 0.1,
        "total_lower_0.9": 11.0, "total_upper_0.9": 33.0,
        "total_conformal_lower_0.9": None, "total_conformal_upper_0.9": None,
        "total_quantile_0.25": 17.0, "total_exceeds_25.0": 0.125,
    }  # fmt: skip
    columns = {name: Column("number", [value]) for name, value in numbers.items()}
    columns["out_of_distribution"] = Column("boolean", [False])
    table = from_stream(to_stream(columns))
    table.metadata |= {"model": "m", "version": "1", "prune": "0.0", "samples": "100"}
    print_prediction(table, 1)
    shown = " ".join(capsys.readouterr().out.split())
    assert "11 to 33" in shown
    assert "unbounded" in shown
    assert "0.125" in shown
    found = Prediction(table, None, lambda table: table).totals
    assert (found.mean[0], found.median[0], found.mc_error[0]) == (20.0, 19.0, 0.1)
    assert found.interval(0.9).upper[0] == 33.0
    assert (found.quantile(0.25)[0], found.exceeds(25)[0]) == (17.0, 0.125)
    with pytest.raises(ValueError, match=r"do not have the threshold 30; predict with totals="):
        found.exceeds(30)
    plain = from_stream(to_stream({"mean": columns["mean"]}))
    plain.metadata |= {"model": "m"}
    with pytest.raises(ValueError, match="m has no totals"):
        _ = Prediction(plain, None, str).totals


def test_contributions_are_columns_and_the_strongest_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parts = {"": (0.1, -3.0, 0.0, 1.5, 2.0), "aleatoric_": (0.2,) * 5, "epistemic_": (0.0,) * 5}
    numbers = {
        "mean": 2.0, "aleatoric_variance": 0.5, "epistemic_variance": 0.5,
        **{
            f"{error}{part}contribution_{name}": value
            for error in ("", "standard_error_")
            for part, values in parts.items()
            for name, value in zip(("a", "b", "lower_limit", "d", "e"), values, strict=True)
        },
    }  # fmt: skip
    columns = {name: Column("number", [value]) for name, value in numbers.items()}
    columns["out_of_distribution"] = Column("boolean", [False])
    table = from_stream(to_stream(columns))
    table.metadata |= {"model": "m", "version": "1", "prune": "0.0", "samples": "100"}
    print_prediction(table, 1)
    shown = capsys.readouterr().out
    assert [line.split()[line.split().index(name) + 1] for name, line in (
        (name, next(line for line in shown.splitlines() if f" {name} " in line))
        for name in ("b", "e", "d")
    )] == ["-3", "+2", "+1.5"]  # fmt: skip
    found = Prediction(table, None, lambda table: table).contributions
    assert found.features == ("a", "b", "lower_limit", "d", "e")
    assert found.mean.tolist() == [[0.1, -3.0, 0.0, 1.5, 2.0]]
    assert found.aleatoric_error.tolist() == [[0.2] * 5]
    with pytest.raises(ValueError, match="explain=True"):
        _ = Prediction(from_stream(to_stream({"mean": columns["mean"]})), None, str).contributions


def test_an_explained_file_has_a_column_per_feature_and_part(service: Service) -> None:
    done = credence("predict", "small", "--explain", url=service.url, stdin=ROWS)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    features = ("kind", "x0", "x1")
    bases = [float(r["mean"]) - sum(float(r[f"contribution_{f}"]) for f in features) for r in rows]
    assert bases == pytest.approx([bases[0]] * 3, rel=1e-6, abs=1e-6)
    assert all(float(r["standard_error_epistemic_contribution_x0"]) > 0 for r in rows)


def test_sets_of_classes_are_json_in_csv_and_names_in_a_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = ("label", "probability_ash", "expected_entropy", "mutual_information")
    columns = dict(zip(names, (["ash"], [0.6], [0.5], [0.1]), strict=True))
    sets = {"set_0.9": [["ash", "elm"]], "conformal_set_0.9": [["ash"]]}
    rows = pa.table(columns | sets | {"out_of_distribution": [False]})
    about = {"model": "m", "version": "1", "prune": "0.0", "samples": "100"}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema.with_metadata(about)) as writer:
        writer.write_table(rows)
    table = from_stream(sink.getvalue().to_pybytes())
    write_csv(table, 1)
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["set_0.9"], row["conformal_set_0.9"]) == ('["ash", "elm"]', '["ash"]')
    print_prediction(table, 1)
    shown = " ".join(capsys.readouterr().out.split())
    assert "ash, elm" in shown
    assert "conformal set" in shown


def test_a_bad_cell_is_wrong_use_and_is_named(service: Service) -> None:
    done = credence("predict", "small", url=service.url, stdin="kind,x0,x1\na,b,1\n")
    assert done.returncode == 2
    assert "column 'x0' is no number: line 2 holds 'b'" in done.stderr


def test_a_header_alone_is_wrong_use(service: Service) -> None:
    done = credence("predict", "small", url=service.url, stdin="kind,x0,x1\n")
    assert done.returncode == 2
    assert "the file has a header and no rows" in done.stderr


def test_a_fault_of_a_field_is_told_once(service: Service) -> None:
    done = credence("predict", "small", "--interval", "90", url=service.url, stdin=ROWS)
    assert done.returncode == 1
    assert done.stderr.count("must be less than 1") == 1


def test_an_unknown_variant_is_refused_by_the_service(service: Service) -> None:
    done = credence("predict", "small", "--prune", "0.3", url=service.url, stdin=ROWS)
    assert done.returncode == 1
    assert "0.5" in done.stderr  # the variant that exists


def test_many_rows_go_in_several_requests(service: Service) -> None:
    rows = "kind,x0,x1\n" + "odd,1,2\n" * 1001
    done = credence("predict", "small", "--samples", "2", url=service.url, stdin=rows)
    means = [float(row["mean"]) for row in csv.DictReader(io.StringIO(done.stdout))]
    assert means == pytest.approx([means[0]] * 1001)  # equal rows, equal answers but for rounding


def test_costs_as_json_or_in_a_file_give_actions(service: Service, tmp_path: Path) -> None:
    costs = {"over": 1, "under": 4, "abstain": 0}
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(costs))
    given = [json.dumps(costs), str(path)]
    first, second = (
        credence("predict", "small", "--costs", one, url=service.url, stdin=ROWS) for one in given
    )
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    for row in csv.DictReader(io.StringIO(first.stdout)):
        assert row["ask"] == "true"
        assert float(row["action"]) > float(row["median"])  # too little costs four times as much
        assert float(row["expected_cost"]) == float(row["value_of_information"])


@pytest.mark.parametrize(
    ("costs", "message"),
    [("missing.json", "neither a file"), ("{over: 1}", "not JSON"), ('{"over": 1}', "both over")],
)
def test_wrong_costs_are_refused(service: Service, costs: str, message: str) -> None:
    done = credence("predict", "small", "--costs", costs, url=service.url, stdin=ROWS)
    assert done.returncode != 0
    assert message in " ".join(done.stderr.replace("│", " ").split())
