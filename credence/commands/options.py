"""Options that several commands share."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from credence import DEFAULT_URL
from credence.commands.completion import dataset_ids_and_files, model_names
from credence.train_settings import Effort, LikelihoodName, MethodName, Task
from credence.types import ReadingOptions

Url = Annotated[
    str | None,
    typer.Option(
        "--url", envvar="CREDENCE_URL", help="Address of the service.", show_default=DEFAULT_URL
    ),
]
ModelArgument = Annotated[
    str, typer.Argument(help="Name of the model.", autocompletion=model_names)
]
Data = Annotated[
    str,
    typer.Argument(
        help="A file to upload, or the id of a data set.", autocompletion=dataset_ids_and_files
    ),
]
Target = Annotated[str | None, typer.Option(help="Column to predict; must be given.")]
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", help="Column to predict; must be given, once per target."),
]
ModelName = Annotated[
    str | None, typer.Option("--name", help="Name of the model; default: the data's name.")
]
Hidden = Annotated[list[int] | None, typer.Option(help="Width of a hidden layer; once per layer.")]
Epochs = Annotated[int | None, typer.Option(help="At most this many epochs.")]
Seed = Annotated[int | None, typer.Option(help="Seed of training.")]
TaskOption = Annotated[
    Task | None,
    typer.Option("--task", help="What is predicted; default: by the target's values."),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN,…",
        help="Columns to learn from, separated by commas, or once per column. Default: all others.",
    ),
]
MethodOption = Annotated[
    MethodName | None,
    typer.Option("--method", help="Method of inference. Default: bbb. --set method.… has more."),
]
Likelihood = Annotated[
    LikelihoodName | None,
    typer.Option(help="Distribution of the target, given the features. Default: by its values."),
]
EffortOption = Annotated[
    Effort | None, typer.Option("--effort", help="How much the recipe tries. Default: standard.")
]
FORECASTS = "Forecasts"  # the panel of these options in --help
Time = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The time of a row. Default: the one column of times.",
        rich_help_panel=FORECASTS,
    ),
]
Zone = Annotated[
    str | None,
    typer.Option(
        metavar="ZONE",
        help="The time zone whose clock the times and days follow, such as Europe/Berlin.",
        rich_help_panel=FORECASTS,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Names the series of a row. Default: all rows are one series.",
        rich_help_panel=FORECASTS,
    ),
]
Horizon = Annotated[
    int | None,
    typer.Option(help="Steps ahead that are calibrated and scored.", rich_help_panel=FORECASTS),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Any field of the request; the value is JSON."
    ),
]
Follow = Annotated[
    bool, typer.Option("--follow/--no-follow", help="Wait for the end, or print the job's id.")
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, max=10_000, help="At most this many; default: 20, all with --json."),
]
FirstRows = Annotated[int, typer.Option(min=1, max=10_000, help="Show at most this many.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the service's response as JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

FILE = "How the file is written"  # the panel of these options in --help


def _character(text: str) -> str:
    """One character; a shell writes a tab most easily as \\t or `tab`."""
    return "\t" if text in ("\\t", "tab") else text


Delimiter = Annotated[
    str | None,
    typer.Option(
        parser=_character,
        metavar="CHARACTER",
        help="Between the cells of a line, such as ';'; a tab is '\\t'. Default: found out.",
        rich_help_panel=FILE,
    ),
]
Quote = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER", help="Around cells that hold delimiters.", rich_help_panel=FILE
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Such as utf-8, latin-1, utf-16. Default: found out.", rich_help_panel=FILE),
]
Decimal = Annotated[
    Literal[".", ","] | None,
    typer.Option(help="The decimal mark of the numbers.", rich_help_panel=FILE),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line names the columns.",
        rich_help_panel=FILE,
    ),
]
Skip = Annotated[
    int | None,
    typer.Option(help="Lines above the header or the first row.", rich_help_panel=FILE),
]
Comment = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help="What comment lines begin with, such as '#'.",
        rich_help_panel=FILE,
    ),
]
Index = Annotated[
    bool | None,
    typer.Option(
        "--index/--no-index",
        help="Whether the first column only numbers or names the rows.",
        rich_help_panel=FILE,
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(help="Of a workbook. Default: the first.", rich_help_panel=FILE),
]

Like = Annotated[
    str | None,
    typer.Option(
        metavar="DATA|MODEL",
        help="Read the columns as those of this data set or model.",
        rich_help_panel=FILE,
    ),
]


def reading_options(**options: Any) -> ReadingOptions:
    """The options that were given."""
    given = {name: value for name, value in options.items() if value is not None}
    return cast("ReadingOptions", given)


def column_list(texts: Sequence[str] | None) -> list[str] | None:
    """The columns of an option that takes several, separated by commas; "a,b" is one name."""
    if not texts:
        return None
    return [name.strip() for row in csv.reader(texts, skipinitialspace=True) for name in row]


def json_object(text: str) -> dict[str, Any]:
    """An object of JSON, given as such or as a file.

    Raises:
        typer.BadParameter: it is neither.
    """
    content = text
    if not text.lstrip().startswith("{"):
        try:
            content = Path(text).read_text("utf-8")
        except OSError:
            message = f"{text!r} is neither a file nor an object such as {{...}}"
            raise typer.BadParameter(message) from None
    try:
        found = json.loads(content)
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise typer.BadParameter(f"is {type(found).__name__} in JSON: give an object")
    return found
