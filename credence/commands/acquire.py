"""`credence acquire`: which rows of a file to label next."""

import csv
import sys
from pathlib import Path
from typing import Annotated

import typer

from credence.commands.connection import connect
from credence.commands.files.rows import existing
from credence.commands.options import AsJson, ModelArgument, Url
from credence.rendering import note, print_json, print_table
from credence.types import RowsToLabel


def acquire(
    model: ModelArgument,
    file: Annotated[
        Path,
        typer.Argument(callback=existing, help="Rows without labels: CSV, Excel, Parquet, …"),
    ],
    *,
    k: Annotated[int, typer.Option("--rows", "-k", min=1, help="How many rows to choose.")] = 20,
    batch: Annotated[
        bool,
        typer.Option(
            "--together/--alone",
            help="Choose rows for what their labels tell together, or each by itself.",
        ),
    ] = True,
    version: Annotated[str | None, typer.Option(help="Number or alias; default: newest.")] = None,
    prune: Annotated[float, typer.Option(help="Fraction of a pruned variant.")] = 0.0,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Choose the rows whose labels would teach a model most: a table, or CSV into a pipe.

    Rows are counted from 0, below the header. Rows that have the target are left out.

    Example: `credence acquire concrete unlabelled.csv -k 50 > to-label.csv`
    """
    with connect(url) as client:
        found = client.model(model, version).acquire(file, k, batch=batch, prune=prune)
    if as_json:
        print_json(found)
    elif sys.stdout.isatty():
        _print(found)
    else:
        _write(found)


def _print(found: RowsToLabel) -> None:
    rows = [list(pair) for pair in zip(found["rows"], found["information"], strict=True)]
    print_table(["row", "information (nats)"], rows, "Rows to label, the best first")
    note(f"of {found['candidates']} rows; together {found['joint_information']:.3g} nats")


def _write(found: RowsToLabel) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["row", "information"])
    writer.writerows(zip(found["rows"], found["information"], strict=True))
