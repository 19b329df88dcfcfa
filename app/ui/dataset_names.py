"""What tells data sets of the same name apart: their size, their age and what was changed."""

from app.ui.findings import said
from app.ui.format import format_age, format_value
from core.datasets.dataset import Dataset

MOST_TEXT = 60  # of the first change


def dataset_details(dataset: Dataset) -> str:
    """Such as `800 rows, 3 min ago, changed: size is read as a number, and 2 more`."""
    parts = [f"{format_value(dataset.rows)} rows", format_age(dataset.created_at)]
    if changes := said(dataset):
        first, more = changes[0], len(changes) - 1
        short = first if len(first) <= MOST_TEXT else f"{first[:MOST_TEXT]}…"
        parts.append(f"changed: {short}{f', and {more} more' if more else ''}")
    return ", ".join(parts)
