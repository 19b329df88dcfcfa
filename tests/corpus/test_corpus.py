"""Each file of the corpus becomes what it must, or is refused; a fix does what it says."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.datasets.dataset import Dataset
from core.datasets.datasets import Datasets
from core.datasets.files.ingest import Given
from core.datasets.files.options import DatasetOptions
from core.datasets.findings.finding import Finding
from core.datasets.findings.target_checks import check_target
from core.datasets.understanding import fixes
from core.datasets.understanding.fixes import ColumnFix
from core.exceptions import Invalid, NotParseable, UnsupportedFormat

FILES = Path(__file__).parent / "files"
PLAIN = {  # what the files become whose mess is elsewhere
    "rows": 16,
    "types": {"size": "number", "colour": "category", "y": "number"},
    "values": {
        "size": [1.5, 2.75, 4.0, 5.25],
        "colour": ["red", "green", "green", "red"],
        "y": [0, 7, 5, 17],
    },
}


@dataclass(frozen=True)
class Said:
    """A finding that there must be.

    Args:
        line: one of its examples must be in this line of the file.
        fix: whether it must have a fix.
    """

    code: str
    column: str | None = None
    line: int | None = None
    fix: bool = False


@dataclass(frozen=True, kw_only=True)
class Case:
    """A file of the corpus.

    Args:
        why: what is not to be seen from the rest.
        rows: their number.
        types: of all columns, in order.
        values: the first values of some columns, as JSON; a date without its midnight.
        each: the first values of every column of dates.
        missing: counts; 0 for columns that are not named.
        levels: all levels of some columns of categories.
        unused: columns that are no features by default.
        reading: part of how the file was read.
        findings: those that there must be. Others may only have the severity `info`.
        also: codes of warnings that may be there besides.
        quiet: codes that must not be there.
        refused: what the message must say if the file cannot be read, as a regular expression.
        target: the column to predict, if the findings are those for it.
    """

    file: str
    why: str = ""
    rows: int | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    each: Sequence[str] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unused: Sequence[str] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    findings: Sequence[Said] = ()
    also: Sequence[str] = ()
    quiet: Sequence[str] = ()
    options: DatasetOptions = field(default_factory=DatasetOptions)
    fixes: tuple[ColumnFix, ...] = ()
    refused: str | None = None
    target: str | None = None


def cases() -> list[Case]:
    """All files, with what each must become."""
    expected = json.loads((Path(__file__).parent / "expected.json").read_text(encoding="utf-8"))
    return [_case(file, about) for file, about in expected.items()]


def _case(file: str, about: dict[str, Any]) -> Case:
    if about.pop("like", None) == "plain":
        about = PLAIN | about
    return Case(
        file=file,
        options=DatasetOptions(**about.pop("options", {})),
        fixes=fixes.from_json(about.pop("fixes", [])),
        findings=[Said(**one) for one in about.pop("findings", [])],
        **about,
    )


CASES = cases()
MEDIA_TYPES = {  # what a caller would send who goes by the name of the file
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".txt": "application/octet-stream",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".ndjson": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
    ".zip": "application/zip",
    ".gz": "application/gzip",
    ".npz": "application/x-npz",
}


def add(datasets: Datasets, case: Case) -> Dataset:
    path = FILES / case.file
    media_type = MEDIA_TYPES.get(path.suffix, "application/octet-stream")
    given = Given(case.options)
    dataset, _ = datasets.add(path.name, media_type, path, given=given)
    return datasets.change_columns(dataset.id, case.fixes)[0] if case.fixes else dataset


@pytest.mark.parametrize("case", [c for c in CASES if c.refused is None], ids=lambda c: c.file)
def test_a_file_is_read_as_meant(datasets: Datasets, case: Case) -> None:
    dataset = add(datasets, case)
    if case.types:
        assert {c.name: c.type for c in dataset.columns} == case.types
        assert [c.name for c in dataset.columns] == list(case.types)
        assert {c.name: c.missing for c in dataset.columns if c.missing} == case.missing
    assert dataset.rows == case.rows
    assert {c.name for c in dataset.columns if not c.use} == set(case.unused)
    levels = {c.name: sorted(c.levels or ()) for c in dataset.columns}
    assert {name: levels[name] for name in case.levels} == case.levels
    assert {name: getattr(dataset.reading, name) for name in case.reading} == case.reading
    rows = datasets.rows(dataset.id, 100)
    types = {c.name: c.type for c in dataset.columns}
    dates = dict.fromkeys((n for n, type_ in types.items() if type_ == "datetime"), case.each)
    for name, values in (dates | dict(case.values)).items():
        found = [row[name] for row in rows[: len(values)]]
        assert found == [_expected(value, types[name]) for value in values]
    _check_findings(case, findings_of(datasets, dataset, case.target))


@pytest.mark.parametrize("case", [c for c in CASES if c.refused], ids=lambda c: c.file)
def test_a_refusal_says_where_and_what_to_do(datasets: Datasets, case: Case) -> None:
    with pytest.raises((Invalid, NotParseable, UnsupportedFormat)) as refused:
        add(datasets, case)
    message = str(refused.value)
    assert re.search(str(case.refused), message), message


def test_the_files_are_those_of_the_cases() -> None:
    assert sorted(path.name for path in FILES.iterdir()) == sorted(case.file for case in CASES)


def _expected(value: Any, type_: str) -> Any:
    if type_ == "datetime" and isinstance(value, str):
        return f"{value}Z" if "T" in value else f"{value}T00:00:00Z"
    return pytest.approx(value, rel=1e-12) if isinstance(value, int | float | list) else value


def findings_of(datasets: Datasets, dataset: Dataset, target: str | None) -> tuple[Finding, ...]:
    if target is None:
        return dataset.findings

    load = partial(datasets.columns, dataset.id)
    return (*dataset.findings, *check_target(dataset, target, load))


def _check_findings(case: Case, found: tuple[Finding, ...]) -> None:
    said = {_said(finding, line) for finding in found for line in (None, *_lines(finding))}
    for wanted in case.findings:
        assert replace(wanted, fix=False) in said, found
        if wanted.fix:
            assert any(f.fix for f in found if (f.code, f.column) == (wanted.code, wanted.column))
    expected = {wanted.code for wanted in case.findings} | set(case.also)
    assert not {f.code for f in found} & set(case.quiet), found
    loud = [f for f in found if f.severity != "info" and f.code not in expected]
    assert not loud, loud


def _said(finding: Finding, line: int | None) -> Said:
    return Said(finding.code, finding.column, line)


def _lines(finding: Finding) -> list[int | None]:
    return [example.line for example in finding.examples]


MOST = 2  # findings of a code and a file: each fix reads the file again


def _one_of_each_code() -> Iterator[Any]:
    """Every file that is read; those whose findings other files have, too, are slow."""
    known: set[str] = set()
    for case in CASES:
        codes = {said.code for said in case.findings} | set(case.also)
        if case.refused is None:
            marks = [] if codes - known else [pytest.mark.slow]
            yield pytest.param(case, marks=marks, id=case.file)
            known |= codes


@pytest.mark.parametrize("case", list(_one_of_each_code()))
def test_a_fix_does_what_it_says(datasets: Datasets, case: Case) -> None:
    before = add(datasets, case)
    seen = Counter[str]()
    for finding in findings_of(datasets, before, case.target):
        seen[finding.code] += 1
        if not finding.fix or seen[finding.code] > MOST:
            continue
        after = _fixed(datasets, before, finding)
        said = [(one.code, one.message) for one in findings_of(datasets, after, case.target)]
        assert (finding.code, finding.message) not in said
        assert _stored(datasets, after) != _stored(datasets, before), finding
        for change in finding.fix.get("columns", ()):
            _check(before, after, change, finding)


def _fixed(datasets: Datasets, dataset: Dataset, finding: Finding) -> Dataset:
    fix = finding.fix or {}
    columns = fixes.from_json(fix.get("columns", ()))
    options = DatasetOptions(**fix.get("options", {}))
    return datasets.change_columns(dataset.id, columns, options=options)[0]


def _check(before: Dataset, after: Dataset, change: dict[str, Any], finding: Finding) -> None:
    name = change["name"]
    (reading,) = (one for one in after.readings if one.name == name)
    for key in change.keys() & {"type", "use"}:
        assert getattr(reading, key) == change[key], finding
    if "read as missing" in finding.message:  # and the fix reads the cells
        assert _missing(after, name) <= _missing(before, name) - finding.rows, finding
    elif change.keys() == {"name", "missing"}:
        assert _missing(after, name) == _missing(before, name) + finding.rows, finding
    elif change.get("format") == "exact":
        assert _missing(after, name) == _missing(before, name), finding


def _missing(dataset: Dataset, name: str) -> int:
    return next(one.missing for one in dataset.columns if one.name == name)


def _stored(datasets: Datasets, dataset: Dataset) -> Any:
    """The first rows, and what a model would read of them."""
    types = [(one.name, one.type, one.use) for one in dataset.columns]
    return datasets.rows(dataset.id, 100), dataset.rows, types
