"""`credence predict`: rows in, predictions with their uncertainty out."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credence.commands.connection import connect
from credence.commands.options import AsJson, ModelArgument, Url
from credence.commands.reading import STANDARD_INPUT, existing, rows_of
from credence.prediction_files import BINARY, ResultFormat, result_writer
from credence.prediction_rows import BadRows, Rows
from credence.progress import rows_bar, somebody_watches
from credence.questions import future_of, inputs_of
from credence.rendering import print_json
from credence.row_files import RowFormat
from credence.types import Json, Version

if TYPE_CHECKING:
    from credence.client import Client

ROWS_PER_REQUEST = 1_000  # with the 10,000 samples that a request may ask for: the default MAX_WORK
TEXTS_PER_REQUEST = 100  # whose work counts their tokens, too
ALL = sys.maxsize


def predict(
    model: ModelArgument,
    file: Annotated[
        Path,
        typer.Argument(
            callback=existing,
            help="CSV, JSONL, Parquet or Arrow stream, for a language model text; - is standard "
            "input. For a forecast the history, in the order of time.",
        ),
    ] = STANDARD_INPUT,
    *,
    version: Annotated[str | None, typer.Option(help="Number or alias; default: newest.")] = None,
    samples: Annotated[int | None, typer.Option(help="Number of Monte-Carlo samples.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the samples.")] = None,
    prune: Annotated[float | None, typer.Option(help="Fraction of a pruned variant.")] = None,
    interval: Annotated[
        list[float] | None, typer.Option(help="Level of an interval; once per level.")
    ] = None,
    abstain_above: Annotated[
        float | None,
        typer.Option(help="Mark rows of a larger standard deviation, of classes entropy (nats)."),
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Forecasts: so many steps ahead.")] = None,
    future: Annotated[
        Path | None,
        typer.Option(callback=existing, help="Forecasts: a file with the covariates of the steps."),
    ] = None,
    top: Annotated[int | None, typer.Option(help="Language models: so many next tokens.")] = None,
    from_: Annotated[
        RowFormat | None,
        typer.Option("--from", help="Format of the rows; default: by the file's suffix, or CSV."),
    ] = None,
    format_: Annotated[
        ResultFormat | None,
        typer.Option("--format", help="Of the result; default: a table on a terminal, else CSV."),
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Predict rows, texts, or what comes next: a table on a terminal, CSV into a pipe.

    Examples:

    `credence predict concrete rows.csv --samples 1000`

    `credence predict concrete --prune 0.95 --interval 0.5 --interval 0.9 < rows.csv > out.csv`

    `credence predict concrete rows.parquet --format parquet > predictions.parquet`

    `credence predict airline history.csv --horizon 12 --future holidays.csv`

    `echo "the cat sat on" | credence predict lines`
    """
    given = {
        "samples": samples,
        "seed": seed,
        "prune": prune,
        "intervals": interval,
        "abstain_above": abstain_above,
        "horizon": horizon,
        "top": top,
    }
    request: Json = {key: value for key, value in given.items() if value is not None}
    result = _checked(format_, as_json=as_json)
    with connect(url) as client, ExitStack() as files:
        described = client.version(model, version)
        request |= {"model": model, "version": described["version"]}
        rows = files.enter_context(rows_of(file, inputs_of(described), from_))
        request |= _future(described, future)
        if as_json:
            (question,) = _questions(described, rows, ALL)
            print_json(client.submit_predict(request | question))
        else:
            _predict_in_parts(client, request, described, rows, result)


def _checked(format_: ResultFormat | None, *, as_json: bool) -> ResultFormat:
    """The format that is wanted; a terminal shows no bytes."""
    if as_json and format_:
        raise typer.BadParameter("give either --json or --format")
    if format_ in BINARY and sys.stdout.isatty():
        raise typer.BadParameter(f"{format_} is no text: write it to a file, with > FILE")
    return format_ or ("table" if sys.stdout.isatty() else "csv")


def _predict_in_parts(
    client: "Client", request: Json, version: Version, rows: Rows, format_: ResultFormat
) -> None:
    """A table is its own progress; of a file that is written something is to be seen."""
    visible = somebody_watches() and not sys.stdout.isatty()
    size = TEXTS_PER_REQUEST if version["task"] == "language_model" else ROWS_PER_REQUEST
    first_row = 1
    with result_writer(format_) as write, rows_bar(None, visible=visible) as show:
        for question in _questions(version, rows, size):
            write(client.submit_predict(request | question), first_row)
            first_row += len(question["inputs"])
            show(len(question["inputs"]))


def _questions(version: Version, rows: Rows, size: int) -> Iterator[Json]:
    """The rows in parts of a request each, and in the form that the model reads."""
    if version["task"] == "forecasting":
        yield {"inputs": _columns(list(rows.records))}
        return
    for batch in rows.batches(size):
        is_text = version["task"] == "language_model"
        yield {"inputs": [row["text"] for row in batch] if is_text else batch}


def _future(version: Version, file: Path | None) -> Json:
    """What is to be told of the steps ahead, if the model wants to know."""
    wanted = future_of(version) if version["task"] == "forecasting" else []
    names = ", ".join(feature["name"] for feature in wanted)
    if wanted and file is None:
        message = f"{version['model']} needs {names} of the steps ahead: give --future FILE"
        raise typer.BadParameter(message)
    if file is None:
        return {}
    if not wanted:
        raise typer.BadParameter(f"{version['model']} has no covariates: leave out --future")
    with rows_of(file, wanted) as rows:
        return {"future": _columns(list(rows.records))}


def _columns(records: list[Json]) -> Json:
    if not records:
        raise BadRows("there are no rows")
    return {name: [record[name] for record in records] for name in records[0]}
