"""Each file of the corpus becomes what it must: its types, values and findings, or its refusal."""

import re
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from core.datasets.dataset import Dataset
from core.datasets.datasets import Datasets
from core.datasets.files.ingest import Given
from core.datasets.findings.finding import Finding
from core.datasets.findings.target_checks import check_target
from core.exceptions import Invalid, NotParseable, UnsupportedFormat
from tests.corpus.case import FILES, Case, Said, cases

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
