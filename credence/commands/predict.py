"""`credence predict`: rows in, predictions with their uncertainty out."""

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from credence.commands.connection import connect
from credence.commands.options import AsJson, Url
from credence.prediction_rows import BadRows, Rows, read_rows
from credence.prediction_tables import print_prediction, write_csv
from credence.rendering import note, print_json
from credence.types import Json

if TYPE_CHECKING:
    from credence.client import Client

STANDARD_INPUT = Path("-")
ROWS_PER_REQUEST = 1_000  # with the 10,000 samples that a request may ask for: the default MAX_WORK


def existing(file: Path) -> Path:
    """The file; typer's complaint if there is none."""
    if file != STANDARD_INPUT and not file.is_file():
        raise typer.BadParameter(f"there is no file {str(file)!r}")
    return file


def predict(
    model: Annotated[str, typer.Argument(help="Name of the model.")],
    file: Annotated[
        Path, typer.Argument(callback=existing, help="CSV with a header; - is standard input.")
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
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Predict the rows of a CSV file: a table on a terminal, CSV into a pipe.

    Examples:

    `credence predict concrete rows.csv --samples 1000`

    `credence predict concrete --prune 0.95 --interval 0.5 --interval 0.9 < rows.csv > out.csv`
    """
    given = {
        "samples": samples,
        "seed": seed,
        "prune": prune,
        "intervals": interval,
        "abstain_above": abstain_above,
    }
    request: Json = {key: value for key, value in given.items() if value is not None}
    with connect(url) as client, wrong_use(), open_rows(file) as lines:
        card = client.version(model, version)
        request |= {"model": model, "version": card["version"]}
        rows = read_rows(lines, card["features"])
        if rows.ignored:
            note(f"not features, ignored: {', '.join(rows.ignored)}")
        if as_json:
            print_json(client.submit_predict(request | {"inputs": list(rows.records)}))
        else:
            _predict_batches(client, request, rows)


def _predict_batches(client: "Client", request: Json, rows: Rows) -> None:
    write = print_prediction if sys.stdout.isatty() else write_csv
    first_row = 1
    for batch in rows.batches(ROWS_PER_REQUEST):
        write(client.submit_predict(request | {"inputs": batch}), first_row)
        first_row += len(batch)


@contextmanager
def wrong_use() -> Iterator[None]:
    """Within, rows that cannot be read end the command with what is wrong with them."""
    try:
        yield
    except (BadRows, csv.Error, UnicodeDecodeError) as error:
        raise typer.BadParameter(str(error)) from None


@contextmanager
def open_rows(file: Path) -> Iterator[TextIO]:
    """The lines of a file, or of standard input."""
    if file != STANDARD_INPUT:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            yield lines
    elif sys.stdin.isatty():
        raise BadRows("no rows: give a FILE, or pipe CSV in")
    else:
        yield TextIOWrapper(sys.stdin.buffer, newline="", encoding="utf-8-sig")
