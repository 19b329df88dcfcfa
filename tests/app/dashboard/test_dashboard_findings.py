"""Findings and readings in words, and which fixes a page applies at once."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from app.ui.column_readings import UNUSED, column_rows
from app.ui.findings import finding_groups, mend_all, mending, reasons, said, shown
from app.ui.reading import LABELS, reading_fields, reading_sentence, upload_fields
from core.datasets.dataset import Dataset
from core.datasets.files.ingest import Given, ingest
from core.datasets.files.options import DatasetOptions, Reading, ReadingOptions
from core.datasets.files.source import Source
from core.datasets.findings.finding import Code, Example, Finding, Severity, fix_column, fix_options
from core.datasets.understanding.fixes import ColumnFix
from models.features.columns import ColumnProfile, ColumnReading

DATASET = Dataset(
    id="ds_1",
    owner="",
    name="prices.csv",
    format="csv",
    rows=10,
    columns=(ColumnProfile(name="id", type="category", use=False),),
    bytes=1,
    sha256="",
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
    readings=(ColumnReading(name="id", type="category", use=False),),
)


def finding(code: Code, severity: Severity, **fix: Any) -> Finding:
    return Finding(code=code, severity=severity, message=code, fix=fix or None)


def of_column(code: Code, severity: Severity, name: str, **changes: Any) -> Finding:
    return finding(code, severity, **fix_column(name, **changes))


@pytest.mark.parametrize(
    ("fix", "label", "done"),
    [
        (fix_column("x", use=False), "Leave “x” out", "“x” is left out"),
        (fix_column("x", use=True), "Use “x”", "“x” is used"),
        (
            fix_column("zip", type="category"),
            "Read “zip” as a category",
            "“zip” is read as a category",
        ),
        (
            fix_column("day", type="datetime", format="%m/%d/%Y"),
            "Read “day” as a date or time written as MM/DD/YYYY",
            "“day” is read as a date or time written as MM/DD/YYYY",
        ),
        (
            fix_column("city", format="exact"),
            "Keep blanks and case in “city”",
            "Blanks and case count in “city”",
        ),
        (
            fix_column("t", missing=["-999"]),
            "Read “-999” in “t” as missing",
            "“-999” in “t” is missing",
        ),
        (
            {"columns": [], "options": {"header": False}},
            "Read the first line as data",
            "The first line is read as data",
        ),
        (
            {"options": {"delimiter": ";", "decimal": ","}},
            "Read the file with delimiter: semicolon, decimal mark: ,",
            "The file is read with delimiter: semicolon, decimal mark: ,",
        ),
    ],
)
def test_a_fix_says_what_it_does(fix: dict[str, Any], label: str, done: str) -> None:
    button = mending(fix)
    assert button.label == label
    assert button.done == f"{done}. This is a new data set; the old one is kept."
    assert button.body == fix


def test_the_worst_comes_first_and_many_are_folded() -> None:
    notes = [finding("constant", "info") for _ in range(5)]
    error, warning = finding("leak", "error"), finding("sentinel", "warning")
    groups = finding_groups([*notes, warning, error])
    assert [group.severity for group in groups] == ["error", "warning", "info"]
    assert [(len(group.first), len(group.more)) for group in groups] == [(1, 0), (1, 0), (3, 2)]


def test_equal_fixes_have_one_button() -> None:
    found = [of_column(code, "info", "x", type="category") for code in ("unit", "thousands")]
    (group,) = finding_groups(found)
    assert [one.mending is None for one in group.first] == [False, True]


def test_a_button_that_undoes_a_reading_is_no_fix() -> None:
    words = Finding(
        code="mostly_numeric",
        severity="info",
        message="2 words",
        examples=tuple(Example(line, word) for line, word in ((3, "-"), (5, "n/a"), (6, "-"))),
        fix=fix_column("rooms", type="category", missing=[]),
    )
    one = shown(words)
    assert one.undoes
    assert one.mending is not None
    told = "Read “rooms” as a category, no longer numbers, with “-”, “n/a” as levels"
    assert one.mending.label == told
    assert one.mending.body == words.fix
    assert not shown(of_column("leak", "warning", "copy", use=False)).undoes


def test_a_button_says_that_a_column_would_be_numbers_no_longer_and_names_all_marks() -> None:
    cells = ["-"] * 9 + [str(year) for year in range(1900, 2000)] + ["n/a"] * 3
    table = pa.table({"Year built": cells, "x": [str(i % 7) for i in range(len(cells))]})
    found = ingest(Source(table=table, typed=False)).findings
    (words,) = [one for one in found if one.code == "mostly_numeric"]
    lines = [(one.line, one.value) for one in words.examples]
    assert lines == [(1, "-"), (2, "-"), (3, "-"), (4, "-"), (110, "n/a")]
    button = shown(words).mending
    assert button is not None
    assert button.label == (
        "Read “Year built” as a category, no longer numbers, with “-”, “n/a” as levels"
    )
    price = of_column("thousands", "info", "Price", type="category")
    button = shown(price).mending
    assert button is not None
    assert button.label == "Read “Price” as a category, no longer numbers"


def test_the_button_of_misspelt_levels_says_what_it_merges() -> None:
    one = fix_column("city", levels={"Muenich": "Munich"})
    slip = Finding(code="misspelt", severity="warning", message="", rows=4, fix=one)
    button = shown(slip)
    assert button.mending is not None
    assert button.mending.label == "Read “Muenich” (4 rows) as “Munich”"
    assert button.mending.body == one
    assert not button.undoes
    two = fix_column("city", levels={"Muenich": "Munich", "Berln": "Berlin"})
    button = shown(replace(slip, fix=two, rows=20))
    assert button.mending is not None
    assert button.mending.label == "Read “Muenich” as “Munich”, “Berln” as “Berlin” (20 rows)"


def test_the_button_of_copies_says_how_many_rows_it_leaves_out() -> None:
    fix = fix_options(unique_rows=True)
    copies = Finding(code="duplicate_rows", severity="warning", message="", rows=18, fix=fix)
    button = shown(copies)
    assert button.mending is not None
    assert button.mending.label == "Leave out the 18 rows that equal an earlier one"
    assert (button.mending.body, button.undoes) == (fix, False)
    kept = shown(replace(copies, severity="info", fix=fix_options(unique_rows=False)))
    assert kept.mending is not None
    assert (kept.mending.label, kept.undoes) == ("Keep rows that equal an earlier one", True)


def test_merged_levels_and_copies_are_mended_at_once() -> None:
    found = mend_all(
        [
            of_column("misspelt", "warning", "city", levels={"Berln": "Berlin"}),
            of_column("many_levels", "warning", "city", use=False),
            finding("duplicate_rows", "warning", options={"unique_rows": True}),
        ]
    )
    assert found is not None
    assert found.label == "Apply 3 fixes at once"
    assert found.body == {
        "columns": [{"name": "city", "levels": {"Berln": "Berlin"}, "use": False}],
        "options": {"unique_rows": True},
    }


def test_what_was_merged_and_left_out_is_said() -> None:
    given = Given(
        DatasetOptions(unique_rows=True), (ColumnFix(name="id", levels={"b": "a", "c": "a"}),)
    )
    reading = ColumnReading(name="id", type="category", levels={"b": "a", "c": "a"})
    changed = replace(DATASET, given=given, readings=(reading,), reading=Reading(repeated_rows=18))
    assert said(changed) == [
        "rows that equal an earlier one left out: yes",
        "“b” as “a”, “c” as “a” is read in “id”",
    ]
    (row,) = column_rows(changed)
    assert row.how == ["“b”, “c” read as “a”"]
    assert reading_sentence(changed).endswith("18 rows left out because they equal an earlier one.")


def test_fixes_that_mend_are_applied_at_once() -> None:
    found = mend_all(
        [
            of_column("leak", "error", "copy", use=False),
            of_column("sentinel", "warning", "t", missing=["-999"]),
            of_column("mostly_numeric", "warning", "t", type="number", missing=["-"]),
            of_column("thousands", "error", "price", type="number", format="1.234,56"),
        ]
    )
    assert found is not None
    assert found.label == "Apply 4 fixes at once"
    assert found.body == {
        "columns": [
            {"name": "copy", "use": False},
            {"name": "t", "type": "number", "missing": ["-999", "-"]},
            {"name": "price", "type": "number", "format": "1.234,56"},
        ]
    }


def test_what_undoes_or_contradicts_is_not_applied_at_once() -> None:
    fixes = [
        of_column("leak", "error", "a", use=False),
        of_column("postal_code", "warning", "zip", type="category"),
        of_column("identifier", "warning", "id", use=True),
        of_column("dates_ambiguous", "warning", "day", format="%m/%d/%Y"),
        of_column("mostly_numeric", "warning", "price", type="category"),
        of_column("many_levels", "warning", "zip", type="number"),
        finding("header_missing", "warning", options={"header": True}),
        finding("target_missing", "warning"),
    ]
    found = mend_all(fixes)
    assert found is not None
    assert found.hint == "Leave “a” out; Read “zip” as a category"
    assert found.body["columns"] == [
        {"name": "a", "use": False},
        {"name": "zip", "type": "category"},
    ]
    assert mend_all(fixes[1:]) is None, "a single one has its own button"


def test_all_that_is_applied_at_once_is_said() -> None:
    found = mend_all(
        [
            *(of_column("many_levels", "warning", name, use=False) for name in "abcdef"),
            of_column("constant", "info", "f", use=False),
        ]
    )
    assert found is not None
    assert found.label == "Apply 6 fixes at once"
    assert found.hint == "; ".join(f"Leave “{name}” out" for name in "abcdef")


def test_a_column_that_is_not_used_says_why() -> None:
    identifier = Finding(
        code="identifier", severity="info", message="“id” numbers the rows", column="id"
    )
    noted = replace(DATASET, findings=(identifier,))
    assert reasons(noted) == {"id": "“id” numbers the rows"}
    left_out = replace(noted, given=Given(fixes=(ColumnFix(name="id", use=False),)))
    assert reasons(left_out) == {"id": "you left it out"}
    assert said(left_out) == ["“id” is left out"]
    (row,) = column_rows(noted)
    assert (row.chosen, row.reason) == (UNUSED, "“id” numbers the rows")


def test_a_column_says_how_its_texts_were_read() -> None:
    reading = ColumnReading(name="id", type="datetime", format="%d.%m.%Y", missing=("-", "n/a"))
    (row,) = column_rows(replace(DATASET, readings=(reading,)))
    assert row.how == ["written as DD.MM.YYYY", "“-”, “n/a” are missing"]


@pytest.mark.parametrize(
    ("reading", "told"),
    [
        (Reading(), "Read as CSV."),
        (
            Reading(encoding="utf-8", delimiter=",", decimal=".", header=True, skip=0),
            (
                "Read as CSV in UTF-8: a comma between cells, decimal point, column names in the "
                "first line."
            ),
        ),
        (
            Reading(
                encoding="latin-1", delimiter="\t", header=False, skip=2, comment="#", index=True,
                packing="zip", member="a.csv",
            ),
            ("Read as CSV in latin-1, from a.csv in a zip file: a tab between cells, column names "
            "made up, no header, 2 lines above skipped, lines that begin with # skipped, the first "
            "column only numbers the rows and is left out."),
        ),
    ],
)  # fmt: skip
def test_how_the_file_was_read_is_one_sentence(reading: Reading, told: str) -> None:
    assert reading_sentence(replace(DATASET, reading=reading)) == told


def test_the_fields_are_those_of_the_file() -> None:
    def names(reading: Reading) -> list[str]:
        return [field.name for field in reading_fields(reading)]

    assert [field.name for field in upload_fields()] == list(LABELS)
    assert set(LABELS) == set(ReadingOptions.__dataclass_fields__)
    assert all(field.hint for field in upload_fields())
    assert names(Reading()) == []
    assert names(Reading(sheet="Daten", header=True)) == ["sheet", "header", "skip", "index"]
    assert "sheet" not in names(Reading(delimiter=","))
    (delimiter, *_) = reading_fields(Reading(delimiter="~"))
    assert (delimiter.value, delimiter.choices[-1]) == ('"~"', ('"~"', "~"))
