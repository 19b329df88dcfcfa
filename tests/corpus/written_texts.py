"""Text files as programs other than Python's write them, by their documentation."""

import csv
import io
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.corpus.frames import NAMES, Frame


def r_csv(frame: Frame, path: Path, delimiter: str = ",", decimal: str = ".") -> None:
    """As `write.csv`: quoted texts and row names, NA, 15 digits, quotes doubled."""

    def cell(value: Any) -> str:
        match value:
            case None:
                return "NA"
            case bool():
                return str(value).upper()
            case int() | float():
                return f"{value:.15g}".replace(".", decimal)
            case datetime():
                return f"{value:%Y-%m-%d}"
        doubled = str(value).replace('"', '""')
        return f'"{doubled}"'

    lines = [["", *NAMES], *([str(i), *row] for i, row in enumerate(frame.rows, 1))]
    path.write_text("".join(f"{delimiter.join(map(cell, line))}\n" for line in lines))


def r_csv2(frame: Frame, path: Path) -> None:
    """As `write.csv2`: semicolons and decimal commas."""
    r_csv(frame, path, ";", ",")


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
