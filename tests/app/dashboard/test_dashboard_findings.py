"""Findings and readings: their order, what their buttons send, which fixes are applied at once."""

from typing import Any

from app.ui.findings import mend_all
from core.datasets.findings.finding import Code, Finding, Severity, fix_column


def finding(code: Code, severity: Severity, **fix: Any) -> Finding:
    return Finding(code=code, severity=severity, message=code, fix=fix or None)


def of_column(code: Code, severity: Severity, name: str, **changes: Any) -> Finding:
    return finding(code, severity, **fix_column(name, **changes))


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
