"""Options that several commands share."""

from typing import Annotated

import typer

from credence import DEFAULT_URL
from credence.commands.completion import dataset_ids_and_files, model_names

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
ModelName = Annotated[
    str | None, typer.Option("--name", help="Name of the model; default: the data's name.")
]
Hidden = Annotated[list[int] | None, typer.Option(help="Width of a hidden layer; once per layer.")]
Epochs = Annotated[int | None, typer.Option(help="At most this many epochs.")]
Seed = Annotated[int | None, typer.Option(help="Seed of training.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Any field of the request; the value is JSON."
    ),
]
Follow = Annotated[
    bool, typer.Option("--follow/--no-follow", help="Wait for the end, or print the job's id.")
]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="Show at most this many.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the service's response as JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
