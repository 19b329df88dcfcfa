"""The fix of a finding does what it says: the finding goes, and the stored values change."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from core.datasets.dataset import Dataset
from core.datasets.datasets import Datasets
from core.datasets.files.options import DatasetOptions
from core.datasets.findings.finding import Finding
from core.datasets.understanding import fixes
from tests.corpus.case import Case
from tests.corpus.test_corpus import CASES, add, findings_of

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
