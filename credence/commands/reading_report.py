"""What a data set was read as: the file, its columns, its findings and their commands."""

import shlex
from collections.abc import Iterator
from textwrap import shorten
from typing import Any

from rich.console import Console

from credence import rendering
from credence.commands.parameters import in_options
from credence.fixes import describe, improves
from credence.rendering import describe_values, print_line, print_table
from credence.types import Column, Dataset, Finding, Json

MAX_MERGED = 3  # levels in a command
MAX_DESCRIBED = 120  # characters of what a fix does
MAX_COLUMNS = 50  # of the report before a training; `datasets show` prints all
SEVERITIES = ("error", "warning", "info")
STYLES = {"error": "red", "warning": "yellow", "info": "dim"}
PHRASES = {
    "sheet": "sheet {!r}",
    "delimiter": "{} between cells",
    "quote": "{} around texts",
    "decimal": "decimal {!r}",
    "encoding": "{}",
    "skip": "{} lines skipped",
    "comment": "no lines that begin with {}",
    "header": "a header",
    "index": "the first column only numbers or names the rows",
}
ONE_LINE = "1 line skipped"
DELIMITERS = {"\t": "tab", " ": "blank"}


def print_dataset(
    dataset: Dataset,
    to: Console | None = None,
    *,
    target: str | None = None,
    max_columns: int | None = None,
) -> None:
    """Print how a data set was read, its columns, and its findings with their fixes.

    Args:
        to: by default standard output.
        target: the column to predict that the findings are for.
        max_columns: print at most so many.
    """
    to = to or rendering.output
    columns = dataset["columns"]
    shape = f"{dataset['rows']} rows × {len(columns)} columns"
    print_line(f"{dataset['id']} · {dataset['name']} · {shape}", to, style="bold")
    if source := dataset.get("source"):
        print_line(f"read from {source.get('uri') or source.get('database')}", to)
    print_line(f"read as {describe_reading(dataset)}", to)
    rows = [_column(column, target) for column in columns[:max_columns]]
    print_table(["column", "type", "read as", "missing", "values"], rows, to=to)
    if left := len(columns) - len(rows):
        print_line(f"… and {left} more: `credence datasets show {dataset['id']}`", to)
    print_findings(dataset, to, target=target)


def describe_reading(dataset: Dataset) -> str:
    """`csv: ';' between cells, decimal ',', cp1252, a header`."""
    reading = dataset.get("reading") or {}  # a service of an older release sends none
    parts = list(_parts(reading))
    return dataset["format"] + (f": {', '.join(parts)}" if parts else "")


def _parts(reading: Json) -> Iterator[str]:
    """What is said of each option, in the order of a file: packing, text, lines, columns."""
    if packing := reading.get("packing"):
        member = reading.get("member")
        yield f"{member} in {packing}" if member else f"packed by {packing}"
    for name, phrase in PHRASES.items():
        value = reading.get(name)
        if (name, value) == ("skip", 1):
            yield ONE_LINE
        elif value and (name, value) != ("quote", '"'):
            yield phrase.format(
                DELIMITERS.get(value, repr(value)) if name == "delimiter" else value
            )
    if reading.get("header") is False:
        yield "no header"
    if (repeated := reading.get("repeated_rows")) is not None:
        yield f"{repeated} rows left out that equal an earlier one"


def _column(column: Column, target: str | None) -> list[Any]:
    reading = column.get("reading")
    parts = [reading["format"] or ""] if reading else []
    if reading and reading["missing"]:
        parts.append(f"missing: {' '.join(map(repr, reading['missing']))}")
    for level, meant in (reading.get("levels", {}) if reading else {}).items():
        parts.append(f"{level!r} is {meant!r}")
    if column["name"] == target:
        parts.append("the target")
    elif not column.get("use", True):
        parts.append("not a feature")
    how = ", ".join(filter(None, parts))
    return [column["name"], column["type"], how, column["missing"], describe_values(column)]


def print_findings(dataset: Dataset, to: Console, *, target: str | None = None) -> None:
    """Print the findings, the most severe first, each with its number, lines and fix."""
    numbered = list(enumerate(dataset.get("findings") or [], 1))
    for severity in SEVERITIES:
        some = [(number, one) for number, one in numbered if one["severity"] == severity]
        if some:
            print_line(f"\n{_heading(severity, len(some))}", to, style=STYLES[severity])
        for number, finding in some:
            _print_finding(dataset["id"], number, finding, to, target)


def _heading(severity: str, count: int) -> str:
    if severity == "info":
        return "Also"
    return f"{count} {severity}{'s' if count > 1 else ''}"


def _print_finding(
    dataset_id: str, number: int, finding: Finding, to: Console, target: str | None
) -> None:
    """The number is that of `credence datasets fix --finding`."""
    print_line(f"{number:>3}  {in_options(finding['message'])}{_where(finding)}", to)
    if finding["fix"]:
        command = fix_command(dataset_id, number, finding["fix"], target)
        lead = "" if improves(finding) else "if that is wrong: "
        print_line(f"     {lead}{command}", to)
        if "--finding" in command.split():  # which does not say what it does
            print_line(f"     which does: {shorten(describe(finding['fix']), MAX_DESCRIBED)}", to)


def _where(finding: Finding) -> str:
    """The lines of the examples, unless the message has them."""
    lines = [example["line"] for example in finding["examples"] if example["line"] is not None]
    if not lines or "line" in finding["message"]:
        return ""
    shown = ", ".join(map(str, lines))
    more = " …" if finding["rows"] > len(lines) else ""
    return f" (line{'s' if len(lines) > 1 else ''} {shown}{more})"


def fix_command(dataset_id: str, number: int, fix: Json, target: str | None = None) -> str:
    """The command that makes a new data set with this fix."""
    columns = fix.get("columns") or []
    words = _options(fix.get("options") or {})
    if len(columns) > 1 or any(map(_has_no_option, columns)):
        words = ["--finding", str(number), *(["--target", target] if target else [])]
    elif columns:
        words += ["--column", columns[0]["name"]]
        words += _options({key: columns[0][key] for key in columns[0] if key != "name"})
    return shlex.join(["credence", "datasets", "fix", dataset_id, *words])


def _has_no_option(column: Json) -> bool:
    """Whether options cannot say the fix, or only at great length."""
    levels = column.get("levels") or {}
    pairs = "".join((*levels, *levels.values()))
    return column.get("missing") == [] or len(levels) > MAX_MERGED or "=" in pairs


def _options(values: Json) -> list[str]:
    """The options of a command: a flag for a boolean, one per item of a list, else one."""
    words = []
    for name, value in values.items():
        match value:
            case None:
                pass
            case bool():
                words.append(f"--{'' if value else 'no-'}{name.replace('_', '-')}")
            case dict():
                words += [word for pair in value.items() for word in ("--merge", "=".join(pair))]
            case list():
                words += [word for one in value for word in (f"--{name}", one)]
            case _:
                words += [f"--{name}", str(value)]
    return words
