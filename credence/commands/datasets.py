"""`credence datasets`: upload, list, show and delete data sets."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credence.commands.completion import dataset_ids
from credence.commands.connection import connect
from credence.commands.options import AsJson, Limit, Url, Yes
from credence.commands.sharing import add_share
from credence.rendering import (
    note,
    print_columns,
    print_datasets,
    print_fields,
    print_json,
    print_table,
)
from credence.types import Dataset

if TYPE_CHECKING:
    from credence.client import Client

app = typer.Typer(no_args_is_help=True, help="Data sets: upload, list, show and delete them.")

DatasetId = Annotated[str, typer.Argument(help="Id of the data set.", autocompletion=dataset_ids)]


@app.command("list")
def list_datasets(limit: Limit = 20, as_json: AsJson = False, url: Url = None) -> None:
    """List the data sets.

    Example: `credence datasets list`
    """
    with connect(url) as client:
        datasets = list(islice(client.datasets(), limit))
    if not datasets:
        note("no data sets yet: `credence datasets upload FILE` uploads one")
    print_json(datasets) if as_json else print_datasets(datasets)


@app.command()
def show(dataset: DatasetId, as_json: AsJson = False, url: Url = None) -> None:
    """Show one data set and its columns.

    Example: `credence datasets show ds_01`
    """
    with connect(url) as client:
        answer = client.dataset(dataset)
    print_json(answer) if as_json else _print(answer)


@app.command()
def upload(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The file.")],
    name: Annotated[str | None, typer.Option(help="Default: the file's name.")] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Upload a CSV, Parquet, Arrow stream, npz or text file (.gz too).

    Example: `credence datasets upload concrete.csv --name concrete`
    """
    with connect(url) as client:
        answer = upload_file(client, file, name)
    print_json(answer) if as_json else _print(answer)


@app.command()
def rows(dataset: DatasetId, limit: Limit = 20, as_json: AsJson = False, url: Url = None) -> None:
    """Show the first rows.

    Example: `credence datasets rows ds_01 --limit 5`
    """
    with connect(url) as client:
        records = client.dataset_rows(dataset, limit)
    if as_json:
        print_json(records)
    elif records:
        print_table(list(records[0]), (list(record.values()) for record in records))


@app.command()
def delete(dataset: DatasetId, yes: Yes = False, url: Url = None) -> None:
    """Delete a data set; refused while a queued or running job needs it.

    Example: `credence datasets delete ds_01 --yes`
    """
    if not yes:
        typer.confirm(f"Delete the data set {dataset}?", abort=True)
    with connect(url) as client:
        client.delete_dataset(dataset)
    typer.echo(f"deleted {dataset}")


def upload_file(client: "Client", file: Path, name: str | None = None) -> Dataset:
    """Upload a file; `typer.BadParameter` for a suffix that the service does not read."""
    try:
        return client.upload(file, name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _print(dataset: Dataset) -> None:
    names = {"id": "dataset", "name": "name", "rows": "rows", "bytes": "bytes", "sha256": "sha256"}
    print_fields({label: dataset[key] for key, label in names.items()})  # type: ignore[literal-required]
    print_columns(dataset["columns"])


add_share(app, "datasets", "ds_01")
