"""`credence datasets`: upload, list, show, fix and delete data sets."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from credence.commands.completion import dataset_ids
from credence.commands.connection import connect
from credence.commands.lists import shown
from credence.commands.options import (
    AsJson,
    Comment,
    Decimal,
    Delimiter,
    Encoding,
    FirstRows,
    Header,
    Index,
    Like,
    Limit,
    Quote,
    Sheet,
    Skip,
    Url,
    Yes,
    reading_options,
)
from credence.commands.reading_report import print_dataset
from credence.commands.sharing import add_share
from credence.fixes import apply, describe, improves
from credence.rendering import note, print_datasets, print_json, print_table
from credence.types import Finding, Json

app = typer.Typer(no_args_is_help=True, help="Data sets: upload, list, show, fix and delete them.")

ColumnType = Literal["number", "category", "boolean", "datetime", "text"]
DatasetId = Annotated[str, typer.Argument(help="Id of the data set.", autocompletion=dataset_ids)]


@app.command("list")
def list_datasets(limit: Limit = None, as_json: AsJson = False, url: Url = None) -> None:
    """List the data sets.

    Example: `credence datasets list`
    """
    with connect(url) as client:
        datasets = shown(client.datasets(), limit, as_json=as_json)
    if not datasets:
        note("no data sets yet: `credence datasets upload FILE` uploads one")
    print_json(datasets) if as_json else print_datasets(datasets)


@app.command()
def show(
    dataset: DatasetId,
    target: Annotated[
        str | None, typer.Option(help="The column to predict: also show its findings as a target.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Show how a data set was read, its columns and what to look at before a training.

    Example: `credence datasets show ds_01 --target y`
    """
    with connect(url) as client:
        answer = client.dataset(dataset, target)
    print_json(answer) if as_json else print_dataset(answer, target=target)


@app.command()
def upload(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The file.")],
    name: Annotated[str | None, typer.Option(help="Default: the file's name.")] = None,
    *,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    header: Header = None,
    skip: Skip = None,
    comment: Comment = None,
    index: Index = None,
    sheet: Sheet = None,
    like: Like = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Upload a file, and show how it was read and what to look at before a training.

    CSV, TSV, JSON, Excel, OpenDocument, Parquet, Arrow, Feather, ORC, npz and text; also packed by
    gzip, zstd, bz2 or zip. How a file is written is found out; the options set it.

    Examples:

    `credence datasets upload concrete.csv --name concrete`

    `credence datasets upload prices.txt --delimiter ';' --decimal , --encoding latin-1`
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
    with connect(url) as client:
        answer = client.upload(file, name, like=like, **reading)
    print_json(answer) if as_json else print_dataset(answer)


@app.command()
def add(
    source: Annotated[
        str | None,
        typer.Option(help="What to read: s3://…, https://… or file:///…; a folder ends in /."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of the data set.")] = None,
    *,
    format_: Annotated[
        str | None, typer.Option("--format", help="Such as delta; default: found out.")
    ] = None,
    secret: Annotated[
        str | None, typer.Option(help="The operator's name of the credentials.")
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="The operator's name of a database; goes with --query.")
    ] = None,
    query: Annotated[str | None, typer.Option(help="One SELECT.")] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Read files, a table or a query where they lie. The service reads them, not this machine.

    Examples:

    `credence datasets add --source 's3://lake/sales/*.parquet' --secret lake --name sales`

    `credence datasets add --database shop --query 'SELECT * FROM sales' --name sales`
    """
    if (source is None) == (database is None) or (database is None) != (query is None):
        raise typer.BadParameter("give --source URI, or --database NAME with --query SELECT")
    stem = (source or database or "").rstrip("/").rpartition("/")[2]
    with connect(url) as client:
        answer = client.read_source(
            name or stem.replace("*", "").strip(".") or "data",
            source,
            format=format_,
            secret=secret,
            database=database,
            query=query,
        )
    print_json(answer) if as_json else print_dataset(answer)


@app.command()
def refresh(dataset: DatasetId, as_json: AsJson = False, url: Url = None) -> None:
    """Read the source of a data set again: the next data set, or the same if nothing changed.

    Example: `credence datasets refresh ds_01`
    """
    with connect(url) as client:
        answer = client.refresh(dataset)
    if answer["id"] == dataset:
        note("the source has the same bytes as before: this is the same data set")
    print_json(answer) if as_json else print_dataset(answer)


@app.command()
def fix(
    dataset: DatasetId,
    *,
    finding: Annotated[
        list[int] | None,
        typer.Option(
            help="Apply what `datasets show` prints below the finding of this number; "
            "once per finding."
        ),
    ] = None,
    column: Annotated[str | None, typer.Option(help="The column to read otherwise.")] = None,
    type_: Annotated[ColumnType | None, typer.Option("--type", help="Its type.")] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="How it writes its values: a number as the file would write 1234.56, a date as "
            "%d.%m.%Y, a boolean as yes/no; exact: blanks and case of a category count.",
        ),
    ] = None,
    missing: Annotated[
        list[str] | None, typer.Option(help="A text for a missing value; once per text.")
    ] = None,
    use: Annotated[
        bool | None,
        typer.Option("--use/--no-use", help="Whether trainings use it by default."),
    ] = None,
    merge: Annotated[
        list[str] | None,
        typer.Option(
            help="A level of a category and the one that it is read as: Muenich=Munich; once per "
            "level."
        ),
    ] = None,
    unique_rows: Annotated[
        bool | None,
        typer.Option(
            "--unique-rows/--no-unique-rows",
            help="Whether rows that equal an earlier one are left out.",
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The --target of the `datasets show` that numbered them.")
    ] = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    header: Header = None,
    skip: Skip = None,
    comment: Comment = None,
    index: Index = None,
    sheet: Sheet = None,
    name: Annotated[str | None, typer.Option(help="Of the new data set.")] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Read the file or some columns otherwise: a new data set. The old one stays.

    Examples:

    `credence datasets fix ds_01 --column price --type number --missing - --missing n/a`

    `credence datasets fix ds_01 --decimal , --no-header`

    `credence datasets fix ds_01 --column city --merge Muenich=Munich`

    `credence datasets fix ds_01 --unique-rows`

    `credence datasets fix ds_01 --finding 2 --finding 3`
    """
    given = {
        "type": type_,
        "format": format_,
        "missing": missing or None,
        "use": use,
        "levels": merged_levels(merge or ()) or None,
    }
    changes = {key: value for key, value in given.items() if value is not None}
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
        unique_rows=unique_rows,
    )
    if bool(changes) != (column is not None):
        raise typer.BadParameter(
            "--column goes with --type, --format, --missing, --merge, --use, --no-use"
        )
    if not (changes or finding or reading):
        raise typer.BadParameter("give --column NAME, --finding NUMBER, or how to read the file")
    fixes: list[Json] = [{"columns": [{"name": column, **changes}]}] if column else []
    with connect(url) as client:
        if finding:
            fixes = _chosen(client.dataset(dataset, target)["findings"], finding) + fixes
        try:
            answer = apply(client, dataset, [*fixes, {"options": reading}], name)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
    print_json(answer) if as_json else print_dataset(answer)


def merged_levels(pairs: Sequence[str]) -> dict[str, str]:
    """`Muenich=Munich` as levels of a fix.

    Raises:
        typer.BadParameter: a pair has no or several signs, or two pairs name one level.
    """
    levels: dict[str, str] = {}
    for pair in pairs:
        level, sign, meant = pair.partition("=")
        if not (level and sign and meant) or "=" in meant:
            message = f"{pair!r} is no level with the one that it is read as: give Muenich=Munich"
            raise typer.BadParameter(message, param_hint="--merge")
        if level in levels:
            raise typer.BadParameter(f"{level!r} is given twice", param_hint="--merge")
        levels[level] = meant
    return levels


def _chosen(findings: Sequence[Finding], numbers: Sequence[int]) -> list[Json]:
    """The fixes of these findings, as `datasets show` numbers them; it says what each does."""
    fixes = [_fix_of(findings, number) for number in numbers]
    for number, fix in zip(numbers, fixes, strict=True):
        undoes = "" if improves(findings[number - 1]) else "undoes how the table was read: "
        note(f"finding {number}: {undoes}{describe(fix)}")
    return fixes


def _fix_of(findings: Sequence[Finding], number: int) -> Json:
    if not 1 <= number <= len(findings):
        there = f"there are {len(findings)}" if findings else "there are none"
        raise typer.BadParameter(f"no finding {number}: {there}", param_hint="--finding")
    finding = findings[number - 1]
    if finding["fix"] is None:
        message = f"finding {number} has no fix: {finding['message']}"
        raise typer.BadParameter(message, param_hint="--finding")
    return finding["fix"]


@app.command()
def rows(
    dataset: DatasetId, limit: FirstRows = 20, as_json: AsJson = False, url: Url = None
) -> None:
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


add_share(app, "datasets", "ds_01")
