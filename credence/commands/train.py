"""`credence train`: train a model on a file or data set."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credence.commands.before_training import check_column, review
from credence.commands.connection import connect
from credence.commands.files.headers import column_names
from credence.commands.following import follow
from credence.commands.options import (
    AsJson,
    Comment,
    Data,
    Decimal,
    Delimiter,
    EffortOption,
    Encoding,
    Epochs,
    Features,
    Follow,
    Header,
    Hidden,
    Horizon,
    Index,
    Key,
    Likelihood,
    MethodOption,
    ModelName,
    Quote,
    Seed,
    Settings,
    Sheet,
    Skip,
    Targets,
    TaskOption,
    Time,
    Url,
    Yes,
    Zone,
    column_list,
    reading_options,
)
from credence.commands.setting_names import check_names, check_settings
from credence.rendering import note, print_json, print_version
from credence.types import Dataset, Json, ReadingOptions

if TYPE_CHECKING:
    from credence.client import Client


def train(
    data: Data,
    *,
    target: Targets = None,
    name: ModelName = None,
    hidden: Hidden = None,
    epochs: Epochs = None,
    seed: Seed = None,
    features: Features = None,
    method: MethodOption = None,
    likelihood: Likelihood = None,
    effort: EffortOption = None,
    groups: Annotated[
        str | None,
        typer.Option(help="A column in each group of which conformal intervals are right."),
    ] = None,
    task: TaskOption = None,
    time: Time = None,
    zone: Zone = None,
    key: Key = None,
    horizon: Horizon = None,
    alias: Annotated[str | None, typer.Option(help="Alias for the new version.")] = None,
    set_: Settings = None,
    follow_: Follow = True,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    header: Header = None,
    skip: Skip = None,
    comment: Comment = None,
    index: Index = None,
    sheet: Sheet = None,
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Train a model; settings not given follow the recommended recipe.

    First it shows how the data were read and what to look at. On a terminal it asks before it
    trains in spite of warnings; elsewhere it stops at errors. `--yes` trains in any case.

    Examples:

    `credence train concrete.csv --target y`

    `credence train ds_01 --target y --name concrete --hidden 50 --hidden 50 --alias champion`

    `credence train concrete.csv --target y --features x0,x1 --method ensemble --effort quick`

    `credence train concrete.csv --target y --set method.kl.weight=0.1 --set pruning=[0.5]`

    `credence train bakery.csv --target flour --target butter`

    `credence train sales.csv --target sales --task forecasting --horizon 12`
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
    options: Json = {
        "network.hidden": hidden,
        "training.epochs": epochs,
        "training.seed": seed,
        "training.groups": groups,
        "training.effort": effort,
        "features": column_list(features),
        "task": task,
        "method.kind": method,
        "likelihood": likelihood,
        "forecast.time": zoned_time(time, zone),
        "forecast.key": key,
        "forecast.horizon": horizon,
    }
    targets = [named_target(one, data, reading) for one in target or (None,)]
    wanted = targets if len(targets) > 1 else targets[0]
    columns = {"--groups": groups, "--time": time, "--key": key}
    check_columns(options["features"], columns, data, reading)
    request = build_request(options | {"target": wanted, "model": name, "alias": alias}, set_)
    check_settings(request)
    check_names(request)
    with connect(url) as client:
        set_dataset(client, request, data, targets[0], reading, yes=yes)
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
        steps = (f"credence predict {version['model']} ROWS", "credence open", card)
        note(f"next: {' · '.join(f'`{step}`' for step in steps)}", style="dim")


def named_target(target: str | None, data: str, reading: ReadingOptions) -> str:
    """The column to predict.

    Raises:
        typer.BadParameter: no target is given, or the file surely has no such column; the message
            names the columns if the file is text.
    """
    if target is not None:
        check_column(target, data, reading, "--target")
        return target
    names = column_names(Path(data), reading) if Path(data).is_file() else None
    choice = f", one of {', '.join(names)}" if names else ""
    raise typer.BadParameter(f"name the column to predict{choice}", param_hint="--target")


def check_columns(
    features: Sequence[str] | None,
    others: Mapping[str, str | None],
    data: str,
    reading: ReadingOptions,
) -> None:
    """Raise `typer.BadParameter` if a file surely lacks a column that an option names."""
    for name in features or ():
        check_column(name, data, reading, "--features")
    for option, column in others.items():
        if column is not None:
            check_column(column, data, reading, option)


def zoned_time(time: str | None, zone: str | None) -> Json | str | None:
    """The setting `forecast.time` of a column and a time zone."""
    if zone is None:
        return time
    if time is None:
        raise typer.BadParameter("needs --time, the column of the local times", param_hint="--zone")
    return {"column": time, "zone": zone}


def build_request(options: Mapping[str, Any], settings: Sequence[str] | None) -> Json:
    """The request from dotted paths: first the options that are not None, then `--set`."""
    request: Json = {}
    for path, value in options.items():
        if value is not None:
            assign(request, path, value)
    for setting in settings or []:
        assign(request, *parse_setting(setting))
    return request


def set_dataset(
    client: "Client", request: Json, data: str, target: str, reading: ReadingOptions, *, yes: bool
) -> None:
    """Upload `data` if it is a file, and set the request's data set and default model name.

    Raises:
        typer.BadParameter, typer.Exit: see `review`.
    """
    from credence.client.dataset_calls import model_name_of  # noqa: PLC0415 - with httpx

    dataset = find_dataset(client, data, reading)
    request.setdefault("model", model_name_of(_data_name(dataset, data)))
    request["dataset"] = review(client, dataset, target, yes=yes)["id"]


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


def find_dataset(client: "Client", data: str, reading: ReadingOptions) -> Dataset:
    """The data set; a file is uploaded first.

    Raises:
        typer.BadParameter: `data` is neither a file nor an id, or an id with options of files.
    """
    path = Path(data)
    if path.is_file():
        dataset = client.upload(path, **reading)
        note(f"{dataset['id']}: {dataset['rows']} rows of {path.name}")
        return dataset
    if not data.startswith("ds_"):
        raise typer.BadParameter(f"{data!r} is neither a file nor the id of a data set (ds_…)")
    if reading:
        option = f"--{next(iter(reading))}"
        raise typer.BadParameter(
            f"{option} is for a file, and {data} is a data set: make another one of the same file "
            f"with `credence datasets fix {data} {option} …`"
        )
    return client.dataset(data)


def _data_name(dataset: Dataset, data: str) -> str:
    """The file's name, also if its bytes were uploaded by another one; else the data set's."""
    return Path(data).name if Path(data).is_file() else dataset["name"]
