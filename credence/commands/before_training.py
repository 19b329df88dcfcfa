"""What is said and asked before a training: how the data were read, and whether to go on."""

import difflib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from credence.commands.connection import EXIT_REFUSED
from credence.commands.file_headers import names_without
from credence.commands.reading_report import MAX_COLUMNS, print_dataset
from credence.rendering import errors, fail, note
from credence.types import ColumnFix, Dataset, Finding, ReadingOptions

if TYPE_CHECKING:
    from credence.client import Client

MAX_NAMES = 20  # columns that a message lists


def check_target(target: str, data: str, options: ReadingOptions) -> None:
    """`typer.BadParameter` if the header of a file shows that it lacks the target."""
    path = Path(data)
    if path.is_file() and (names := names_without(target, path, options)) is not None:
        raise no_column(target, names)


def no_column(target: str, names: Sequence[str]) -> typer.BadParameter:
    """The error for a target that is no column, with the nearest name."""
    folded = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(target.casefold(), list(folded), n=1)
    listed = ", ".join(names[:MAX_NAMES]) + (" …" if len(names) > MAX_NAMES else "")
    hint = f"did you mean {folded[near[0]]!r}? " if near else ""
    return typer.BadParameter(
        f"no column {target!r}: {hint}The columns are {listed}", param_hint="--target"
    )


def review(client: "Client", dataset: Dataset, target: str, *, yes: bool) -> Dataset:
    """Show how the data were read, and ask whether to train on them if there are warnings.

    Returns:
        The data set, or one with the fixes that the caller has chosen.

    Raises:
        typer.BadParameter: the target is no column.
        typer.Exit: the caller does not train, or cannot be asked about an error.
    """
    names = [column["name"] for column in dataset["columns"]]
    if target not in names:
        raise no_column(target, names)
    while True:
        dataset = client.dataset(dataset["id"], target)
        print_dataset(dataset, errors, target=target, max_columns=MAX_COLUMNS)
        serious = [f for f in dataset.get("findings") or [] if f["severity"] != "info"]
        if yes or not serious:
            return dataset
        if not _is_terminal():
            _stop_at_errors(serious)
            return dataset
        match _ask(serious):
            case "y":
                return dataset
            case "n":
                note(f"not trained; {dataset['id']} is kept")
                raise typer.Exit(EXIT_REFUSED)
        dataset = _fixed(client, dataset, serious)


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _stop_at_errors(findings: Sequence[Finding]) -> None:
    """Without a terminal: end the command if a training would go wrong."""
    wrong = [finding for finding in findings if finding["severity"] == "error"]
    if wrong:
        advice = (
            "run a fix above and train on the data set that it prints; --yes trains all the same"
        )
        fail(f"not trained: {wrong[0]['message']}\n{advice}", EXIT_REFUSED)


def _ask(findings: Sequence[Finding]) -> str:
    """y: train; n: do not; f: apply fixes. Errors make n the default."""
    default = "n" if any(finding["severity"] == "error" for finding in findings) else "y"
    fixes = any(finding["fix"] for finding in findings)
    choices = [*"yn", *("f" if fixes else "")]
    shown = "/".join(one.upper() if one == default else one for one in choices)
    meaning = ", f = fix one by one" if fixes else ""
    answer = ""
    while answer not in choices:
        answer = (
            typer.prompt(f"Train? [{shown}]{meaning}", default, show_default=False, err=True)
            .strip()
            .lower()[:1]
        )
    return answer


def _fixed(client: "Client", dataset: Dataset, findings: Sequence[Finding]) -> Dataset:
    """The data set with the fixes that the caller takes."""
    columns: dict[str, ColumnFix] = {}
    for finding in findings:
        if finding["fix"] is None:
            continue
        note(finding["message"])
        if typer.confirm(f"  {describe_fix(finding['fix']['columns'])}?", default=True, err=True):
            merge(columns, finding["fix"]["columns"])
    return client.fix_columns(dataset["id"], list(columns.values())) if columns else dataset


def merge(columns: dict[str, ColumnFix], more: Sequence[ColumnFix]) -> None:
    """Add fixes to those of the same columns; lists of missing values are joined."""
    for fix in more:
        before = columns.get(fix["name"], {"name": fix["name"]})
        both = [*before.get("missing", ()), *fix.get("missing", ())]
        columns[fix["name"]] = before | fix
        if both:
            columns[fix["name"]]["missing"] = list(dict.fromkeys(both))


def describe_fix(columns: Sequence[ColumnFix]) -> str:
    """`price: type number, missing '-'`."""
    return "; ".join(f"{fix['name']}: {', '.join(_changes(fix))}" for fix in columns)


def _changes(fix: ColumnFix) -> list[str]:
    changes = [f"{key} {fix[key]}" for key in ("type", "format") if fix.get(key)]
    if "missing" in fix:
        changes.append(f"missing {' '.join(map(shlex.quote, fix['missing'])) or 'nothing'}")
    if fix.get("use") is not None:
        changes.append("use as a feature" if fix["use"] else "leave out of the features")
    return changes
