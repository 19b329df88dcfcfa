"""`credence compare`: train several methods on one file and show their scores."""

from pathlib import Path
from typing import Annotated

import typer

from credence.commands.connection import connect
from credence.commands.following import check_succeeded, watch
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
    Index,
    Likelihood,
    ModelName,
    Quote,
    Seed,
    Settings,
    Sheet,
    Skip,
    Target,
    TaskOption,
    Url,
    Yes,
    column_list,
    reading_options,
)
from credence.commands.setting_names import check_names, check_settings
from credence.commands.train import (
    build_request,
    check_columns,
    find_dataset,
    named_target,
    set_dataset,
)
from credence.rendering import note, print_comparison, print_json
from credence.train_settings import CompareBody


def compare(
    data: Data,
    *,
    target: Target = None,
    methods: Annotated[
        str | None, typer.Option(help="Such as bbb,swag,map; default: five usual methods.")
    ] = None,
    out_of_distribution: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="Rows unlike those of DATA, which the methods should detect."
        ),
    ] = None,
    task: TaskOption = None,
    features: Features = None,
    likelihood: Likelihood = None,
    effort: EffortOption = None,
    name: ModelName = None,
    hidden: Hidden = None,
    epochs: Epochs = None,
    seed: Seed = None,
    set_: Settings = None,
    picture: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="Where to write the charts, as one HTML file."),
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
    yes: Yes = False,
    as_json: AsJson = False,
    follow_: Follow = True,
    url: Url = None,
) -> None:
    """Train several methods on the same rows and show their scores; each becomes a version.

    Examples:

    `credence compare concrete.csv --target y --methods bbb,swag,map --picture methods.html`

    `credence compare ds_01 --target y --out-of-distribution others.csv --hidden 50`

    `credence compare ds_01 --target y --set 'methods=["bbb", {"kind": "sgld", "chains": 8}]'`
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
    if picture is not None and not follow_:
        raise typer.BadParameter("--picture needs the finished job: leave out --no-follow")
    kinds = None if methods is None else [kind.strip() for kind in methods.split(",")]
    target = named_target(target, data, reading)
    chosen = column_list(features)
    check_columns(chosen, {}, data, reading)
    given = {
        "network.hidden": hidden,
        "training.epochs": epochs,
        "training.seed": seed,
        "training.effort": effort,
        "task": task,
        "features": chosen,
        "likelihood": likelihood,
        "target": target,
        "model": name,
        "methods": kinds,
    }
    request = build_request(given, set_)
    check_settings(request, CompareBody)
    check_names(request)
    with connect(url) as client:
        set_dataset(client, request, data, target, reading, yes=yes)
        if out_of_distribution is not None:
            others = find_dataset(client, out_of_distribution, reading_options())
            request["out_of_distribution"] = others["id"]
        job = client.submit_compare(request)
        if not follow_:
            print_json(job) if as_json else typer.echo(job["id"])
            return
        note(f"{job['id']}: training {len(job['request']['methods'])} models {request['model']}")
        job = watch(client, job["id"])
        rows = client.comparison(job["id"])
        print_json(rows) if as_json else print_comparison(rows)
        if picture is not None:
            picture.write_text(client.comparison_page(job["id"]), encoding="utf-8")
    check_succeeded(job)
