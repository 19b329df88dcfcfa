"""What is printed about a data set: how it was read, its columns, and findings with their fixes."""

import io
import shlex
from typing import Any, get_type_hints

import pytest
from rich.console import Console

from credence.commands.parameters import in_options
from credence.commands.reading_report import describe_reading, fix_command, print_dataset
from credence.fixes import describe
from credence.types import Dataset, ReadingOptions

COLUMNS: list[Any] = [
    {"name": "price", "type": "number", "missing": 1, "min": 1.0, "max": 3.0, "mean": 2.0,
     "std": 0.5, "use": True, "reading": {"format": "1.234,56 €", "missing": ["-"]}},
    {"name": "id", "type": "number", "missing": 0, "use": False,
     "reading": {"format": None, "missing": []}},
    {"name": "street", "type": "category", "missing": 0, "levels": [f"s{i}" for i in range(100)],
     "num_levels": 345, "use": True, "reading": {"format": None, "missing": []}},
]  # fmt: skip
MOSTLY: Any = {
    "code": "mostly_numeric", "column": "price", "severity": "warning",
    "message": "price: 1 of 4 values is no number and counts as missing", "rows": 1,
    "examples": [{"line": 1235, "value": "-"}],
    "fix": {"columns": [{"name": "price", "type": "category"}]}, "advised": False,
}  # fmt: skip
LEAK: Any = {
    "code": "leak", "column": "id", "severity": "error", "message": "id tells the target",
    "rows": 4, "examples": [], "fix": {"columns": [{"name": "id", "use": False}]},
    "advised": True,
}  # fmt: skip
NAMES: Any = {
    "code": "names", "column": None, "severity": "info", "message": "two columns are named x",
    "rows": 0, "examples": [], "fix": None,
}  # fmt: skip
DATASET: Dataset = {
    "id": "ds_1", "name": "prices.csv", "format": "csv", "rows": 4, "columns": COLUMNS,
    "bytes": 99, "sha256": "", "created_at": "",
    "reading": {"delimiter": ";", "quote": '"', "decimal": ",", "encoding": "cp1252",
                "header": True, "packing": "zip", "member": "a/prices.csv"},
    "findings": [NAMES, MOSTLY, LEAK],
}  # fmt: skip


def printed(width: int = 120, **options: Any) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    print_dataset(DATASET, console, **options)
    return console.export_text()


def test_one_line_says_how_the_file_was_read() -> None:
    said = "read as csv: a/prices.csv in zip, ';' between cells, decimal ',', cp1252, a header"
    assert said in printed().splitlines()


def test_each_column_shows_how_it_was_read() -> None:
    price, id_, street = printed(target="id").splitlines()[3:6]
    assert "1.234,56 €, missing: '-'" in price
    assert "1 to 3, mean 2 ± 0.5" in price
    assert "the target" in id_
    assert "not a feature" in printed().splitlines()[4]
    assert "s0, s1, s2, s3, s4, s5, … (345 levels)" in street


def test_findings_come_by_severity_with_numbers_lines_and_commands() -> None:
    lines = [line.strip() for line in printed().splitlines()]
    start = lines.index("1 error")
    assert lines[start:] == [
        "1 error",
        "3  id tells the target",
        "credence datasets fix ds_1 --column id --no-use",
        "",
        "1 warning",
        "2  price: 1 of 4 values is no number and counts as missing (line 1235)",
        "if that is wrong: credence datasets fix ds_1 --column price --type category",
        "",
        "Also",
        "1  two columns are named x",
    ]


def test_a_number_in_a_command_is_said_in_words() -> None:
    fix = {"columns": [{"name": name, "use": True} for name in ("id", "Art")]}
    both: Any = {**NAMES, "code": "identifier", "message": "two are identifiers", "fix": fix}
    console = Console(width=120, record=True, file=io.StringIO())
    print_dataset({**DATASET, "findings": [both]}, console)
    assert [line.strip() for line in console.export_text().splitlines()[-3:]] == [
        "1  two are identifiers",
        "if that is wrong: credence datasets fix ds_1 --finding 1",
        "which does: id: use as a feature; Art: use as a feature",
    ]


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        ("if the examples look wrong, encoding= sets another", "wrong, --encoding sets another"),
        ("2 lines above the table left out ('a'): skip= sets how many", ": --skip sets how many"),
        ("set header=false if that row is data", "set --no-header if that row is data"),
        ("set header=true if it holds the names", "set --header if it holds the names"),
        ("quote= sets another, and quote=none takes", "--quote sets another, and --quote none"),
        ("one cell is 'skip=3'", "one cell is 'skip=3'"),
        ("GET /x?header=true", "GET /x?header=true"),
    ],
)
def test_a_parameter_of_a_request_is_named_as_an_option(said: str, printed: str) -> None:
    assert printed in in_options(said)


def test_every_parameter_is_an_option_of_the_command_line() -> None:
    told = get_type_hints(ReadingOptions)
    assert in_options(" ".join(f"{name}=" for name in told)) == " ".join(f"--{n}" for n in told)


def test_one_line_is_no_lines() -> None:
    for lines, said in ((1, "1 line skipped"), (2, "2 lines skipped")):
        assert said in describe_reading({**DATASET, "reading": {"skip": lines}})


def test_a_wide_table_is_cut_before_a_training() -> None:
    text = printed(max_columns=2)
    assert "… and 1 more: `credence datasets show ds_1`" in text
    assert "street" not in text


def test_the_command_says_exactly_the_fix() -> None:
    fix = {"columns": [{"name": "the price", "type": "number", "format": "1.234,56 €",
                        "missing": ["-", "n/a"], "use": True}]}  # fmt: skip
    assert shlex.split(fix_command("ds_1", 3, fix)) == [
        "credence", "datasets", "fix", "ds_1", "--column", "the price", "--type", "number",
        "--format", "1.234,56 €", "--missing", "-", "--missing", "n/a", "--use",
    ]  # fmt: skip
    file = {"options": {"delimiter": ";", "header": False, "skip": 2, "index": None}}
    assert shlex.split(fix_command("ds_1", 3, file))[4:] == [
        "--delimiter", ";", "--no-header", "--skip", "2",
    ]  # fmt: skip
    two = {"columns": [{"name": "a", "use": False}, {"name": "b", "use": False}]}
    assert fix_command("ds_1", 3, two, "y") == "credence datasets fix ds_1 --finding 3 --target y"
    levels = {"Muenich": "Munich", "Berln": "Berlin"}
    merged = {"columns": [{"name": "city", "levels": levels}]}
    assert fix_command("ds_1", 3, merged) == (
        "credence datasets fix ds_1 --column city --merge Muenich=Munich --merge Berln=Berlin"
    )
    sign = {"columns": [{"name": "city", "levels": {"a=b": "c"}}]}
    assert fix_command("ds_1", 3, sign) == "credence datasets fix ds_1 --finding 3"
    copies = {"options": {"unique_rows": True}}
    assert fix_command("ds_1", 3, copies) == "credence datasets fix ds_1 --unique-rows"
    assert describe(merged) == "city: 'Muenich' read as 'Munich', 'Berln' read as 'Berlin'"
    assert describe(copies) == "the file: leave out rows that equal an earlier one"
    none = {"columns": [{"name": "a", "missing": []}]}
    assert fix_command("ds_1", 3, none) == "credence datasets fix ds_1 --finding 3"
