"""Columns whose type may be another than their texts look like: codes, many levels, free text."""

from collections.abc import Iterator

from core.datasets.findings.checked_column import CheckedColumn
from core.datasets.findings.finding import Finding, fix_column
from core.datasets.findings.identifiers import has_own_phrases
from core.datasets.findings.names import names_postal_code

_MANY = 50  # levels
_OWN = 0.9  # levels ÷ rows, from which nearly every row has its own
_FEW_ROWS = 5.0  # per level


def find_postal_codes(columns: list[CheckedColumn]) -> Iterator[Finding]:
    """A finding for each number that is named like a postal code.

    Without the name, whole numbers of five digits may as well be prices or inhabitants.
    """
    for one in columns:
        if one.profile.type == "number" and names_postal_code(one.name) and not one.is_constant:
            yield Finding(
                code="postal_code",
                severity="warning",
                column=one.name,
                message=f"column {one.name!r} is read as a number and named like a postal code: "
                "numbers are ordered, and postal codes are not",
                rows=one.num_present,
                examples=one.examples(),
                fix=fix_column(one.name, type="category"),
            )


def find_many_levels(columns: list[CheckedColumn]) -> Iterator[Finding]:
    """A finding for each category with many levels and few rows per level."""
    for one in columns:
        levels = one.profile.num_levels or 0
        if levels <= _MANY or one.num_present >= _FEW_ROWS * levels:
            continue
        yield Finding(
            code="many_levels",
            severity="warning",
            column=one.name,
            message=f"column {one.name!r} has {levels} levels in {one.num_present} rows: "
            + _rarity(one.num_present, levels),
            rows=one.num_present,
            examples=one.examples(),
            fix=fix_column(one.name, use=False),
        )


def _rarity(rows: int, levels: int) -> str:
    if levels >= _OWN * rows:
        return "nearly every row has its own value, from which a model cannot learn"
    return f"about {rows / levels:.1f} rows per level, so most levels are too rare to learn"


def find_free_text(columns: list[CheckedColumn]) -> Iterator[Finding]:
    """A finding for each column of sentences or phrases. It is left out unless it is wanted."""
    for one in columns:
        if one.profile.type != "text" and not has_own_phrases(one):
            continue
        yield Finding(
            code="free_text",
            severity="info",
            column=one.name,
            message=f"column {one.name!r} is free text and not used by default. As a feature of "
            "type text, a model reads its words and pairs of words",
            rows=one.num_present,
            examples=one.examples(),
            fix=fix_column(one.name, type="text", use=True),
        )
