"""`credence train`: train a model on a file or data set."""

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credence.commands.connection import connect
from credence.commands.datasets import upload_file
from credence.commands.following import follow
from credence.commands.options import (
    AsJson,
    Data,
    Epochs,
    Follow,
    Hidden,
    ModelName,
    Seed,
    Settings,
    Target,
    Url,
)
from credence.rendering import note, print_json, print_version
from credence.types import Json

if TYPE_CHECKING:
    from credence.client import Client


def train(
    data: Data,
    *,
    target: Target = None,
    name: ModelName = None,
    hidden: Hidden = None,
    epochs: Epochs = None,
    seed: Seed = None,
    alias: Annotated[str | None, typer.Option(help="Alias for the new version.")] = None,
    set_: Settings = None,
    follow_: Follow = True,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Train a model; settings not given follow the recommended recipe.

    Examples:

    `credence train concrete.csv --target y`

    `credence train ds_01 --target y --name concrete --hidden 50 --hidden 50 --alias champion`

    `credence train concrete.csv --target y --set method.kl.weight=0.1 --set pruning=[0.5]`
    """
    options = {"network.hidden": hidden, "training.epochs": epochs, "training.seed": seed}
    given = {"target": named_target(target, data), "model": name, "alias": alias}
    request = build_request(options | given, set_)
    with connect(url) as client:
        set_dataset(client, request, data)
        job = client.submit_train(request)
        if not follow_:
            print_json(job) if as_json else typer.echo(job["id"])
            return
        note(f"{job['id']}: training {request['model']}")
        job = follow(client, job["id"])
        version = client.version(job["model"], job["version"])
    print_json(version) if as_json else print_version(version)
    if sys.stderr.isatty():
        card = f"credence models card {version['model']} --html card.html"
        note(f"next: `credence predict {version['model']} ROWS` · `{card}`", style="dim")


def named_target(target: str | None, data: str) -> str:
    """The column to predict.

    Raises:
        typer.BadParameter: no target is given; for a CSV file the message names the columns.
    """
    if target is not None:
        return target
    path = Path(data)
    choice = ""
    if path.is_file() and path.suffix.lower() == ".csv":
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            choice = f", one of {', '.join(next(csv.reader(file), []))}"
    raise typer.BadParameter(f"name the column to predict{choice}", param_hint="--target")


def build_request(options: Mapping[str, Any], settings: Sequence[str] | None) -> Json:
    """The request from dotted paths: first the options that are not None, then `--set`."""
    request: Json = {}
    for path, value in options.items():
        if value is not None:
            assign(request, path, value)
    for setting in settings or []:
        assign(request, *parse_setting(setting))
    return request


def set_dataset(client: "Client", request: Json, data: str) -> None:
    """Upload `data` if it is a file, and set the request's data set and default model name."""
    from credence.client.dataset_calls import model_name_of  # noqa: PLC0415 - with httpx

    request["dataset"], data_name = find_dataset(client, data)
    request.setdefault("model", model_name_of(data_name))


def parse_setting(setting: str) -> tuple[str, Any]:
    """The path and value of `path=value`; a value that is not JSON is a string.

    Raises:
        typer.BadParameter: there is no path or no `=`.
    """
    path, separator, value = setting.partition("=")
    if not (path and separator):
        raise typer.BadParameter(f"--set {setting!r}: write PATH=VALUE, as in training.epochs=50")
    try:
        return path, json.loads(value)
    except json.JSONDecodeError:
        return path, value


def assign(request: Json, path: str, value: Any) -> None:
    """Set `request["a"]["b"] = value` for the path `a.b`.

    Raises:
        typer.BadParameter: a part of the path has a value that is not an object.
    """
    *parents, last = path.split(".")
    if parents == ["target"] and isinstance(request.get("target"), str):
        request["target"] = {"name": request["target"]}  # --set target.lower=0
    for parent in parents:
        request = request.setdefault(parent, {})
        if not isinstance(request, dict):
            raise typer.BadParameter(f"--set {path}: {parent!r} has a value already")
    request[last] = value


def find_dataset(client: "Client", data: str) -> tuple[str, str]:
    """Id and name of the data set; a file is uploaded first."""
    path = Path(data)
    if path.is_file():
        dataset = upload_file(client, path)
        note(f"{dataset['id']}: {dataset['rows']} rows of {path.name}")
        return dataset["id"], path.name
    if not data.startswith("ds_"):
        raise typer.BadParameter(f"{data!r} is neither a file nor the id of a data set (ds_…)")
    return data, client.dataset(data)["name"]
