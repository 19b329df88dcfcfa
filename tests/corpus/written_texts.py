"""Text files as programs other than Python's write them, by their documentation."""

import csv
import io
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.corpus.frames import NAMES, Frame


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
