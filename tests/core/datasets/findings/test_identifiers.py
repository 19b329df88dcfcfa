"""Identifiers, and of several fixes the one that is advised."""

import base64
import hashlib
import uuid
from itertools import combinations

import numpy as np
import pytest

from core.datasets.findings.advice import advised, contradicts
from core.datasets.findings.finding import Code, Finding, Severity, fix_column
from tests.core.datasets.findings.tables import columns_with, found, ingested, target_findings

ROWS = 400
rng = np.random.default_rng(0)
COUNT = np.arange(1, ROWS + 1)
X = rng.normal(size=ROWS)


def digest(i: int) -> str:
    return hashlib.sha256(str(i).encode()).hexdigest()


IDENTIFIERS = {
    "PassengerId": COUNT,
    "customer_id": rng.permutation(10**7)[:ROWS],
    "thing": rng.permutation(COUNT),
    "phone": rng.integers(10**10, 9 * 10**10, ROWS),
    "u": [str(uuid.UUID(int=int(i) * 7**30 % 2**128)) for i in COUNT],
    "short": [digest(i)[:12] for i in COUNT],
    "token": [base64.b64encode(digest(i)[:18].encode()).decode() for i in COUNT],
    "contact": [f"person{i}@example.org" for i in COUNT],
    "reference": [f"INV-2024-{i:05d}" for i in COUNT],
    "who": [
        f"Person{digest(i)[:6].translate(str.maketrans('0123456789', 'ghijklmnop'))}" for i in COUNT
    ],
}

MEASUREMENTS = {
    "weight": X,
    "salary": rng.permutation(10**6)[:ROWS],
    "year": COUNT + 1500,
    "person_income": rng.permutation(10**6)[:ROWS],
    "rank": rng.permutation(COUNT),
    "created": 1_600_000_000 + rng.permutation(10**7)[:ROWS],
    "when": np.datetime64("2020-01-01", "us") + COUNT.astype("timedelta64[D]"),
    "size": [f"{value:.4f}" for value in X],
    "colour": rng.choice(["red", "green", "blue"], ROWS),
    "id_group": rng.integers(0, 5, ROWS),
}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_an_identifier_is_left_out_and_said(name: str) -> None:
    table = {name: IDENTIFIERS[name], "a": X, "b": rng.normal(size=ROWS)}
    (finding,) = found(table, "identifier")
    assert finding.column == name
    assert finding.fix == {"columns": [{"name": name, "use": True}]}
    assert len(finding.examples) == 5
    profiles = {profile.name: profile.use for profile in ingested(table).profiles}
    assert profiles == {name: False, "a": True, "b": True}


@pytest.mark.parametrize("name", ["PassengerId", "thing", "contact"])
def test_copies_of_rows_hide_no_identifier(name: str) -> None:
    again = np.r_[np.arange(ROWS), np.arange(ROWS // 20)]
    column = np.asarray(IDENTIFIERS[name], object)[again].tolist()
    table = {name: column, "a": X[again], "b": rng.normal(size=ROWS)[again]}
    assert columns_with(table, "identifier") == [name]
    shared = {**table, "a": rng.normal(size=len(again))}  # whose rows are no copies
    assert not columns_with(shared, "identifier")


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_a_measurement_or_a_time_is_no_identifier(name: str) -> None:
    assert not columns_with({name: MEASUREMENTS[name], "a": X, "b": X**2}, "identifier")


def test_a_key_that_rows_share_is_kept_with_an_offer() -> None:
    table = {"store_id": rng.integers(1, 20, ROWS), "a": X}
    (finding,) = found(table, "numeric_code")
    assert finding.fix == {"columns": [{"name": "store_id", "type": "category"}]}
    assert ingested(table).profiles[0].use


def finding(code: Code, severity: Severity, **change: object) -> Finding:
    return Finding(code=code, severity=severity, message=code, fix=fix_column("x", **change))


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
