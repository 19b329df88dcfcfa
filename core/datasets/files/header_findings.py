"""Findings on the first row of a table, whether it names the columns."""

from collections.abc import Iterator

from core.datasets.findings.finding import Finding


def header_findings(*, header: bool, is_numbered: bool) -> Iterator[Finding]:
    """What the owner should check about the first row.

    Args:
        header: whether it was read as names.
        is_numbered: whether the names are numbers that follow each other.
    """
    if not header:
        yield Finding(
            code="header_missing",
            severity="warning",
            message="the first row looks like data, so the columns are named column_1, column_2, "
            "…: set header=true if it holds the names",
            fix={"options": {"header": True}},
        )
    if is_numbered:
        yield Finding(
            code="names",
            severity="warning",
            message="the names in the first row are consecutive numbers: set header=false if that "
            "row is data",
            fix={"options": {"header": False}},
        )
