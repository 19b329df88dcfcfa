"""`credence feedback`: rows whose truth is known in, how honest the model was out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credence.commands.connection import connect
from credence.commands.options import AsJson, ModelArgument, Url
from credence.commands.predict import ROWS_PER_REQUEST
from credence.commands.reading import existing, rows_of
from credence.prediction_rows import BadRows, Rows
from credence.rendering import flatten, print_json, print_table
from credence.types import Feature, Feedback, Json, Version

if TYPE_CHECKING:
    from credence.client import Client

TYPES = {bool: "boolean", int: "number", float: "number", str: "category"}


def feedback(
    model: ModelArgument,
    file: Annotated[
        Path,
        typer.Argument(
            callback=existing, help="CSV, JSONL, Parquet or Arrow; - is CSV from standard input."
        ),
    ],
    *,
    truth: Annotated[str, typer.Option(help="Column with what came true; empty: not known.")],
    version: Annotated[str | None, typer.Option(help="Number or alias; default: newest.")] = None,
    prune: Annotated[float | None, typer.Option(help="Fraction of a pruned variant.")] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Tell a model what came true, and see whether it is still honest.

    Example: `credence feedback concrete measured.csv --truth y`
    """
    request: Json = {} if prune is None else {"prune": prune}
    with connect(url) as client:
        card = client.version(model, version)
        request |= {"model": model, "version": card["version"]}
        with rows_of(file, [*_features(card, truth), _target(card, truth)]) as rows:
            told = _tell(client, request, rows, truth)
    print_json(told) if as_json else _print(card, told)


def _features(card: Version, truth: str) -> list[Feature]:
    if card["task"] not in ("regression", "classification"):
        raise typer.BadParameter(
            f"{card['model']} is a model of {card['task']}: use POST /feedback"
        )
    if truth in {feature["name"] for feature in card["features"]}:
        raise typer.BadParameter(
            f"{truth} is a feature of {card['model']}: name the column of the target"
        )
    return card["features"]


def _target(card: Version, truth: str) -> Feature:
    """The column of the truth, of the type that the classes have, or of numbers."""
    classes = card.get("classes")
    return {"name": truth, "type": TYPES[type(classes[0])] if classes else "number"}


def _tell(client: "Client", request: Json, rows: Rows, truth: str) -> Feedback:
    """Every row whose truth is known, and the last answer: its window has seen them all."""
    told: Feedback | None = None
    for batch in rows.batches(ROWS_PER_REQUEST):
        labels = [record.pop(truth) for record in batch]
        if any(label is not None for label in labels):
            told = client.submit_feedback(request | {"inputs": batch, "truth": labels})
    if told is None:
        raise BadRows(f"no row has a value in the column {truth!r}")
    return told


def _print(card: Version, told: Feedback) -> None:
    """The window's metrics beside those on held-out rows."""
    rolling, held_out = flatten(told["rolling"]["metrics"]), flatten(card["metrics"])
    left_out = ("expected_log_likelihood",)  # which is the held-out one
    rows = [[name, value, held_out.get(name)] for name, value in rolling.items()]
    title = f"{told['model']} version {told['version']}"
    shown = [row for row in rows if row[0] not in left_out]
    print_table(["metric", "labelled", "held out"], shown, title)
