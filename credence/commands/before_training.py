"""What is said and asked before a training: how the data were read, and whether to go on."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from credence.commands.connection import EXIT_REFUSED
from credence.commands.files.headers import names_without
from credence.commands.near import nearest
from credence.commands.parameters import in_options
from credence.commands.reading_report import MAX_COLUMNS, print_dataset
from credence.fixes import apply, describe, improves
from credence.rendering import errors, fail, note
from credence.types import Dataset, Finding, ReadingOptions

if TYPE_CHECKING:
    from credence.client import Client

MAX_NAMES = 20  # columns that a message lists


def check_column(name: str, data: str, reading: ReadingOptions, option: str) -> None:
    """`typer.BadParameter` if the header of a file shows that it lacks the column of an option."""
    path = Path(data)
    if path.is_file() and (names := names_without(name, path, reading)) is not None:
        raise no_column(name, names, option)


def no_column(name: str, names: Sequence[str], option: str = "--target") -> typer.BadParameter:
    """The error for an option that names no column, with the nearest name."""
    near = nearest(name, names)
    listed = ", ".join(names[:MAX_NAMES]) + (" …" if len(names) > MAX_NAMES else "")
    hint = "" if near is None else f"did you mean {near!r}? "
    return typer.BadParameter(
        f"no column {name!r}: {hint}The columns are {listed}", param_hint=option
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
        fail(f"not trained: {in_options(wrong[0]['message'])}\n{advice}", EXIT_REFUSED)


def _ask(findings: Sequence[Finding]) -> str:
    """y: train; n: do not; f: apply fixes that improve. Errors make n the default."""
    default = "n" if any(finding["severity"] == "error" for finding in findings) else "y"
    if any(map(improves, findings)):
        return _answer("Train?", "ynf", default, ", f = fix one by one")
    return _answer("Train?", "yn", default)


def _answer(question: str, choices: str, default: str, meaning: str = "") -> str:
    """One of the letters. click would print a blank on standard output; this prints nothing."""
    shown = "/".join(one.upper() if one == default else one for one in choices)
    while True:
        errors.print(f"{question} [{shown}]{meaning}: ", end="", markup=False, highlight=False)
        try:
            typed = input()
        except EOFError:
            raise typer.Abort from None
        answer = typed.strip().lower()[:1] or default
        if answer in choices:
            return answer


def _fixed(client: "Client", dataset: Dataset, findings: Sequence[Finding]) -> Dataset:
    """The data set with the fixes that the caller takes; those that undo are not offered."""
    chosen = []
    for finding in findings:
        if (fix := finding["fix"]) is not None and improves(finding):
            note(in_options(finding["message"]))
            note(f"  {describe(fix)}")
            if _answer("  Apply?", "yn", "y") == "y":
                chosen.append(fix)
    return apply(client, dataset["id"], chosen) if chosen else dataset
