"""Findings and readings: their order, what their buttons send, which fixes are applied at once."""

from typing import Any

from app.ui.findings import finding_groups, mend_all, shown
from core.datasets.findings.finding import Code, Finding, Severity, fix_column, fix_options


def finding(code: Code, severity: Severity, **fix: Any) -> Finding:
    return Finding(code=code, severity=severity, message=code, fix=fix or None)


def of_column(code: Code, severity: Severity, name: str, **changes: Any) -> Finding:
    return finding(code, severity, **fix_column(name, **changes))


def test_the_worst_comes_first_and_many_are_folded() -> None:
    notes = [finding("constant", "info") for _ in range(5)]
    error, warning = finding("leak", "error"), finding("sentinel", "warning")
    groups = finding_groups([*notes, warning, error])
    assert [group.severity for group in groups] == ["error", "warning", "info"]
    assert [(len(group.first), len(group.more)) for group in groups] == [(1, 0), (1, 0), (3, 2)]


def test_a_button_that_undoes_a_reading_is_no_fix() -> None:
    words = of_column("mostly_numeric", "info", "rooms", type="category", missing=[])
    copies = finding("duplicate_rows", "info", **fix_options(unique_rows=False))
    for undoing in (words, copies):
        assert shown(undoing).undoes
    mends = of_column("leak", "warning", "copy", use=False)
    slip = of_column("misspelt", "warning", "city", levels={"Muenich": "Munich"})
    left_out = finding("duplicate_rows", "warning", **fix_options(unique_rows=True))
    assert not any(shown(one).undoes for one in (mends, slip, left_out))


def test_fixes_that_mend_are_applied_at_once() -> None:
    found = mend_all(
        [
            of_column("leak", "error", "copy", use=False),
            of_column("sentinel", "warning", "t", missing=["-999"]),
            of_column("mostly_numeric", "warning", "t", type="number", missing=["-"]),
            of_column("thousands", "error", "price", type="number", format="1.234,56"),
            of_column("misspelt", "warning", "city", levels={"Berln": "Berlin"}),
            of_column("many_levels", "warning", "city", use=False),
            finding("duplicate_rows", "warning", options={"unique_rows": True}),
        ]
    )
    assert found is not None
    assert found.body == {
        "columns": [
            {"name": "copy", "use": False},
            {"name": "t", "type": "number", "missing": ["-999", "-"]},
            {"name": "price", "type": "number", "format": "1.234,56"},
            {"name": "city", "levels": {"Berln": "Berlin"}, "use": False},
        ],
        "options": {"unique_rows": True},
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
    assert found.body["columns"] == [
        {"name": "a", "use": False},
        {"name": "zip", "type": "category"},
    ]
    assert mend_all(fixes[1:]) is None, "a single one has its own button"
