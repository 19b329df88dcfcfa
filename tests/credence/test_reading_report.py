"""The command that is printed beside a finding."""

import shlex
from typing import Any

import pytest

from credence.commands.reading_report import fix_command


@pytest.mark.parametrize(
    ("fix", "options"),
    [
        (
            {"columns": [{"name": "the price", "type": "number", "format": "1.234,56 €",
                          "missing": ["-", "n/a"], "use": True}]},
            ["--column", "the price", "--type", "number", "--format", "1.234,56 €",
             "--missing", "-", "--missing", "n/a", "--use"],
        ),
        (
            {"options": {"delimiter": ";", "header": False, "skip": 2, "index": None}},
            ["--delimiter", ";", "--no-header", "--skip", "2"],
        ),
        (
            {"columns": [{"name": "city", "levels": {"Muenich": "Munich", "Berln": "Berlin"}}]},
            ["--column", "city", "--merge", "Muenich=Munich", "--merge", "Berln=Berlin"],
        ),
        ({"options": {"unique_rows": True}}, ["--unique-rows"]),
        # What no options can say is chosen by its number.
        ({"columns": [{"name": "a", "use": False}, {"name": "b"}]}, ["--finding", "3"]),
        ({"columns": [{"name": "city", "levels": {"a=b": "c"}}]}, ["--finding", "3"]),
        ({"columns": [{"name": "a", "missing": []}]}, ["--finding", "3"]),
    ],
)  # fmt: skip
def test_the_command_says_exactly_the_fix(fix: dict[str, Any], options: list[str]) -> None:
    whole = ["credence", "datasets", "fix", "ds_1", *options]
    assert shlex.split(fix_command("ds_1", 3, fix)) == whole
