"""Tables as a program holds them and as a German spreadsheet saves them, and what is read back."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from core.datasets.datasets import Datasets

NAMES = ("count", "share", "gap", "note", "flag", "day")
TYPES = ("number", "number", "number", "category", "boolean", "datetime")
INSIDE = "abc,;\t\"'|#é\nü%"
UNICODE = INSIDE + "漢字😀ж"
FIRST_DAY = datetime(1990, 1, 13)  # noqa: DTZ001 - a date has no zone


@dataclass(frozen=True)
class Frame:
    """A table: rows of an integer, a number, a number or None, a text, a boolean and a day."""

    rows: Sequence[tuple[int, float, float | None, str, bool, datetime]]

    def columns(self) -> dict[str, list[Any]]:
        """The values of each column."""
        return dict(zip(NAMES, map(list, zip(*self.rows, strict=True)), strict=True))


def frames(inside: str = UNICODE) -> st.SearchStrategy[Frame]:
    """Tables of 8 to 20 rows.

    A text is a `k`, any of the characters of `inside`, and a `k`: so it is neither a number nor a
    word for a missing value, and has no blanks around it.
    """
    number = st.integers(-(10**9), 10**9).map(lambda value: value / 10_000)
    row = st.tuples(
        st.integers(-(10**6), 10**6),
        number,
        st.none() | number,
        st.text(inside, min_size=1, max_size=8).map(lambda text: f"k{text}k"),
        st.booleans(),
        st.integers(0, 12_000).map(lambda days: FIRST_DAY + timedelta(days)),
    )
    return st.lists(row, min_size=8, max_size=20).filter(_is_telling).map(Frame)


def _is_telling(rows: Sequence[tuple[Any, ...]]) -> bool:
    """Whether each column has what makes its type: both booleans, a number, a day above 12.

    And of the numbers one does not look like `1.234`, which may be written with thousands.
    """
    _, shares, gaps, _, flags, days = zip(*rows, strict=True)
    return (
        len(set(flags)) == 2
        and set(gaps) != {None}
        and any(day.day > 12 for day in days)
        and any(len(f"{share}".partition(".")[2]) == 4 for share in shares)
    )


def check(
    datasets: Datasets,
    folder: Path,
    frame: Frame,
    write: Callable[[Frame, Path], None],
    media_type: str,
) -> None:
    """Write a frame, upload the file, and compare the types and the values."""
    path = folder / "written"
    path.unlink(missing_ok=True)
    write(frame, path)
    dataset, _ = datasets.add("written", media_type, path)
    read = [(c.name, "category" if c.type == "text" else c.type) for c in dataset.columns]
    assert read == list(zip(NAMES, TYPES, strict=True))
    found = datasets.columns(dataset.id)
    for name, meant in frame.columns().items():
        _compare(found[name], meant, name)


def _compare(found: np.ndarray, meant: Sequence[Any], name: str) -> None:
    if name == "note":
        assert found.tolist() == list(meant)
    elif name == "day":
        np.testing.assert_array_equal(found, np.array(meant, "datetime64[us]"))
    else:
        numbers = np.array([np.nan if value is None else value for value in meant], np.float64)
        np.testing.assert_allclose(found, numbers, rtol=1e-14)  # 15 digits, as R writes them


def german_spreadsheet(frame: Frame, path: Path) -> None:
    """As a spreadsheet saves CSV under German settings: cp1252, WAHR and FALSCH, 31.12.2020."""

    def cell(value: Any) -> str:
        match value:
            case None:
                return ""
            case bool():
                return "WAHR" if value else "FALSCH"
            case int() | float():
                return f"{value:.15g}".replace(".", ",")
            case datetime():
                return f"{value:%d.%m.%Y}"
        return str(value)

    file = io.StringIO()
    writer = csv.writer(file, delimiter=";", lineterminator="\r\n")
    writer.writerow(NAMES)
    writer.writerows([cell(value) for value in row] for row in frame.rows)
    path.write_bytes(file.getvalue().encode("cp1252"))
