"""`credence feedback`: send true values of rows, show how well they were predicted."""

from pathlib import Path
from typing import Annotated, Any

import typer

from credence.commands.connection import connect
from credence.commands.files.input import input_of, refused
from credence.commands.files.rows import RowFormat, existing
from credence.commands.options import (
    AsJson,
    Comment,
    Decimal,
    Delimiter,
    Encoding,
    Header,
    Index,
    ModelArgument,
    Quote,
    Sheet,
    Skip,
    Url,
    reading_options,
)
from credence.commands.parameters import in_options
from credence.feedback_verdict import leaves, sentence
from credence.rendering import flatten, note, output, print_json, print_line, print_table
from credence.types import Feedback, Json, Version


def feedback(
    model: ModelArgument,
    file: Annotated[
        Path,
        typer.Argument(
            callback=existing, help="CSV, JSON lines, Excel, Parquet, …. - is standard input."
        ),
    ],
    *,
    truth: Annotated[
        str, typer.Option(help="Column with the true values; an empty cell is unknown.")
    ],
    version: Annotated[str | None, typer.Option(help="Number or alias; default: newest.")] = None,
    prune: Annotated[float | None, typer.Option(help="Fraction of a pruned variant.")] = None,
    from_: Annotated[
        RowFormat | None,
        typer.Option("--from", help="Format of the rows; default: found out."),
    ] = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    header: Header = None,
    skip: Skip = None,
    comment: Comment = None,
    index: Index = None,
    sheet: Sheet = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="End with exit code 1 if fewer are right than chance allows."),
    ] = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Send true values of rows and show how well the model predicts them.

    The columns of a file are found by name, and read as those of the training data were.

    The first line is the verdict on the newest rows with true values. It changes after every 100.

    Example: `credence feedback concrete measured.csv --truth y --check`
    """
    reading = reading_options(
        delimiter=delimiter,
        quote=quote,
        encoding=encoding,
        decimal=decimal,
        header=header,
        skip=skip,
        comment=comment,
        index=index,
        sheet=sheet,
    )
    settings: Json = {"truth": truth, **reading} | ({} if prune is None else {"prune": prune})
    with connect(url) as client, input_of(file, from_) as given, refused(given.name):
        about = client.model(model, version).description
        _check(about, truth)
        result = client.run(given.label(client, about, settings))
    _report(result)
    print_json(result) if as_json else _print(about, result)
    if check and leaves(result["rolling"]):
        raise typer.Exit(EXIT_ALERT)


def _check(about: Version, truth: str) -> None:
    if about["task"] not in ("regression", "classification"):
        raise typer.BadParameter(
            f"{about['model']} is a model of {about['task']}: use POST /feedback"
        )
    if truth in {feature["name"] for feature in about["features"]}:
        raise typer.BadParameter(
            f"{truth} is a feature of {about['model']}: name the column of the target"
        )


def _report(result: Feedback) -> None:
    """Say on standard error what the service says about the file."""
    if ignored := result.get("ignored"):
        note(f"not features, ignored: {', '.join(ignored)}")
    for text in result.get("notes", ()):
        note(in_options(text))


EXIT_ALERT = 1
_LEFT_OUT = ("check ", "standard_errors ", "adapted_level ", "expected_log_likelihood")  # of a row


def _print(about: Version, feedback: Feedback) -> None:
    """The verdict, then the window's metrics beside those on held-out rows."""
    rolling, held_out = flatten(feedback["rolling"]["metrics"]), flatten(about["metrics"])
    is_off = leaves(feedback["rolling"])
    print_line(sentence(feedback["rolling"]), output, style="bold red" if is_off else "bold")
    rows = [
        [name, *_with_error(rolling, name), *_with_error(held_out, name)]
        for name in rolling
        if not name.startswith(_LEFT_OUT)
    ]
    title = f"{feedback['model']} version {feedback['version']}"
    print_table(["metric", "labelled", "±", "held out", "±"], rows, title)


def _with_error(metrics: Json, name: str) -> list[Any]:
    """A metric and its standard error, each None if it is not known."""
    return [metrics.get(name), metrics.get(f"standard_errors {name}")]
