"""Stores results as JSON with a description of the machine, and prints Markdown tables."""

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"  # not in git: results depend on the machine


def machine() -> dict[str, Any]:
    """The machine and the versions that results depend on."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load_1_min": os.getloadavg()[0],
        "python": platform.python_version(),
        "commit": _commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def save(name: str, data: dict[str, Any]) -> Path:
    """Write results. An interrupted run leaves the last complete file."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    part = path.with_suffix(".part")
    part.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    part.rename(path)
    return path


def resumable(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The results saved by this commit with these settings; empty if there are none."""
    data = load(name)
    same = data.get("settings") == json.loads(json.dumps(settings))
    return data if same and data["machine"]["commit"] == machine()["commit"] else {}


def load(name: str) -> dict[str, Any]:
    """The results that `save` wrote; empty if there are none."""
    path = RESULTS / f"{name}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def markdown(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table whose first column is text and whose others are numbers."""
    lines = [headers, ["---", *["---:"] * (len(headers) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def figure(value: float | None, digits: int = 3) -> str:
    """Format a number with some significant digits, without an exponent; None is a dash.

    >>> figure(1234.5), figure(0.0451234), figure(None)
    ('1,230', '0.0451', '–')
    """
    if value is None:
        return "–"
    rounded = float(f"{value:.{digits}g}")
    decimals = max(0, digits - 1 - _exponent(rounded))
    return f"{rounded:,.{decimals}f}"


def _exponent(value: float) -> int:
    return int(f"{value:e}".split("e")[1])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
