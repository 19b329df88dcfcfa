"""`credence feedback`: send true values of rows, show how well they were predicted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credence.commands.connection import connect
from credence.commands.options import AsJson, ModelArgument, Url
from credence.commands.row_files import BadRows, Columns, existing, rows_of
from credence.rendering import flatten, print_json, print_table
from credence.types import Feature, Feedback, Version

if TYPE_CHECKING:
    from credence.client import TrainedModel

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
    truth: Annotated[
        str, typer.Option(help="Column with the true values; an empty cell is unknown.")
    ],
    version: Annotated[str | None, typer.Option(help="Number or alias; default: newest.")] = None,
    prune: Annotated[float | None, typer.Option(help="Fraction of a pruned variant.")] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Send true values of rows and show how well the model predicts them.

    Example: `credence feedback concrete measured.csv --truth y`
    """
    with connect(url) as client:
        model_ = client.model(model, version)
        about = model_.description
        with rows_of(file, [*_features(about, truth), _target(about, truth)]) as rows:
            result = _submit(model_, rows.all(), truth, prune)
    print_json(result) if as_json else _print(about, result)


def _features(about: Version, truth: str) -> list[Feature]:
    if about["task"] not in ("regression", "classification"):
        raise typer.BadParameter(
            f"{about['model']} is a model of {about['task']}: use POST /feedback"
        )
    if truth in {feature["name"] for feature in about["features"]}:
        raise typer.BadParameter(
            f"{truth} is a feature of {about['model']}: name the column of the target"
        )
    return about["features"]


def _target(about: Version, truth: str) -> Feature:
    """The column of true values; its type is that of the classes, else number."""
    classes = about.get("classes")
    return {"name": truth, "type": TYPES[type(classes[0])] if classes else "number"}


def _submit(model: "TrainedModel", rows: Columns, truth: str, prune: float | None) -> Feedback:
    from credence.client.frames import Frame  # noqa: PLC0415

    if all(label is None for label in rows[truth].values):
        raise BadRows(f"no row has a value in the column {truth!r}")
    return model.feedback(Frame(rows), truth, prune=prune)


_ELSEWHERE = {"expected_log_likelihood"}  # the held-out log likelihood, which has its own cell
_P_VALUES = ("check coverage 0.9 p_value", "check calibration p_value", "check alarm_p_value")


def _print(about: Version, feedback: Feedback) -> None:
    """The window's metrics beside those on held-out rows."""
    rolling, held_out = flatten(feedback["rolling"]["metrics"]), flatten(about["metrics"])
    rows = [
        [name, value, held_out.get(name)]
        for name, value in rolling.items()
        if name not in _ELSEWHERE and (not name.startswith("check ") or name in _P_VALUES)
    ]
    title = f"{feedback['model']} version {feedback['version']}"
    print_table(["metric", "labelled", "held out"], rows, title)
