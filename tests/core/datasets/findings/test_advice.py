"""Which fixes are advice: none undoes a reading, and no two exclude each other."""

from itertools import combinations

import numpy as np
import pytest

from core.datasets.findings.advice import advised, contradicts
from core.datasets.findings.finding import Code, Finding, Severity, fix_column
from tests.core.datasets.findings.tables import ingested, target_findings

rng = np.random.default_rng(0)


def finding(code: Code, severity: Severity, **change: object) -> Finding:
    return Finding(code=code, severity=severity, message=code, fix=fix_column("x", **change))


LEAVE = finding("many_levels", "warning", use=False)
READ = finding("thousands", "error", type="number", format="1234.56")


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ([READ, LEAVE], [True, False]),
        ([LEAVE, READ], [False, True]),
        ([LEAVE, finding("constant", "info", use=False)], [True, True]),
        (
            [
                finding("sentinel", "warning", missing=["-9"]),
                finding("extreme", "warning", missing=["1e9"]),
                finding("numeric_code", "warning", type="category"),
            ],
            [True, True, True],
        ),
        (
            [
                finding("numeric_code", "warning", type="category"),
                finding("postal_code", "warning", type="number"),
            ],
            [True, False],
        ),
    ],
)
def test_of_two_alternatives_one_is_advised(findings: list[Finding], expected: list[bool]) -> None:
    assert advised(findings) == expected


@pytest.mark.parametrize(
    "undoing",
    [
        finding("identifier", "warning", use=True),
        finding("mostly_numeric", "warning", type="category", missing=[]),
        Finding(code="header_missing", severity="error", message="", fix={"options": {"skip": 1}}),
        Finding(
            code="duplicate_rows",
            severity="info",
            message="",
            fix={"options": {"unique_rows": False}},
        ),
    ],
)
def test_what_undoes_a_reading_is_no_advice(undoing: Finding) -> None:
    assert advised([undoing]) == [False]


def test_the_advice_of_a_messy_table_can_be_applied_together() -> None:
    """No column that is left out is read by another fix, whatever the order of the findings."""
    rows = 200
    size = [f"{value:.1f} m²" for value in rng.uniform(20, 40, rows)]
    price = rng.normal(size=rows) * 100
    temperature = np.where(np.arange(rows) % 5 == 0, -999.0, np.round(rng.normal(15, 3, rows), 1))
    table = {"size": size, "t": temperature, "copy": price * 2, "one": [1.0] * rows, "price": price}
    findings = [*ingested(table).findings, *target_findings(table, "price")]
    assert {"many_levels", "mostly_numeric"} <= {
        one.code for one in findings if one.column == "size"
    }
    for some in (findings, findings[::-1]):
        chosen = [one for one, is_advised in zip(some, advised(some), strict=True) if is_advised]
        assert {one.code for one in chosen} >= {"mostly_numeric", "sentinel", "leak", "constant"}
        changes = [change for one in chosen if one.fix for change in one.fix["columns"]]
        for one, other in combinations(changes, 2):
            assert one["name"] != other["name"] or not contradicts(one, other)
