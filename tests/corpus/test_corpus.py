"""Each file of the corpus becomes what it must: its types, values and findings, or its refusal."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.database.database import Database, migrate
from core.datasets.dataset import Dataset
from core.datasets.datasets import Datasets
from core.datasets.files.ingest import Given
from core.datasets.findings.finding import Finding
from core.datasets.findings.target_checks import check_target
from core.exceptions import Invalid, NotParseable, UnsupportedFormat
from core.storage import DirectoryStore
from tests.corpus.case import Case, Said
from tests.corpus.cases import CASES
from tests.corpus.make import FILES

pytestmark = pytest.mark.process  # some formats are read in a child

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

pytestmark = pytest.mark.process  # some readers run in a child


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Datasets:
    folder = tmp_path_factory.mktemp("corpus")
    database = Database(f"sqlite:///{folder / 'corpus.db'}")
    migrate(database)
    return Datasets(database, DirectoryStore(folder / "store"))


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
    assert {c.name for c in dataset.columns if not c.use} == case.unused
    levels = {c.name: set(c.levels or ()) for c in dataset.columns}
    assert {name: levels[name] for name in case.levels} == case.levels
    assert {name: getattr(dataset.reading, name) for name in case.reading} == case.reading
    rows = datasets.rows(dataset.id, 100)
    types = {c.name: c.type for c in dataset.columns}
    for name, values in case.values.items():
        found = [row[name] for row in rows[: len(values)]]
        assert found == [_expected(value, types[name]) for value in values]
    _check_findings(case, _findings(datasets, dataset, case.target))


@pytest.mark.parametrize("case", [c for c in CASES if c.refused], ids=lambda c: c.file)
def test_a_refusal_says_where_and_what_to_do(datasets: Datasets, case: Case) -> None:
    with pytest.raises((Invalid, NotParseable, UnsupportedFormat)) as refused:
        add(datasets, case)
    message = str(refused.value)
    assert re.search(str(case.refused), message), message
    assert not re.search(r"\bsave (it|the file)\b|\bexport\b", message), message


def test_the_files_are_those_of_the_cases() -> None:
    assert sorted(path.name for path in FILES.iterdir()) == sorted(case.file for case in CASES)
    assert len(CASES) >= 60


TEXTS = [case for case in CASES if Path(case.file).suffix in (".csv", ".tsv", ".jsonl", ".dat")]


@pytest.mark.parametrize("case", TEXTS, ids=lambda c: c.file)
def test_the_bytes_are_those_that_make_writes(case: Case) -> None:
    assert (FILES / case.file).read_bytes() == case.content()


def _expected(value: Any, type_: str) -> Any:
    if type_ == "datetime" and isinstance(value, str):
        return f"{value}Z" if "T" in value else f"{value}T00:00:00Z"
    return pytest.approx(value, rel=1e-12) if isinstance(value, int | float | list) else value


def _findings(datasets: Datasets, dataset: Dataset, target: str | None) -> tuple[Finding, ...]:
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
    expected = {wanted.code for wanted in case.findings} | case.also
    assert not {f.code for f in found} & case.quiet, found
    loud = [f for f in found if f.severity != "info" and f.code not in expected]
    assert not loud, loud


def _said(finding: Finding, line: int | None) -> Said:
    return Said(finding.code, finding.column, line)


def _lines(finding: Finding) -> list[int | None]:
    return [example.line for example in finding.examples]
