"""`credence models`: versions, scores, cards, aliases, export and import."""

import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from credence.commands.connection import connect
from credence.commands.lists import shown
from credence.commands.options import AsJson, Limit, ModelArgument, Url, Yes
from credence.commands.sharing import add_share
from credence.rendering import note, print_card, print_json, print_models, print_version

app = typer.Typer(
    no_args_is_help=True, help="Models: scores, versions, aliases, export and import."
)

Format = Literal["archive", "onnx", "torch"]
Posterior = Literal["full", "mean"]
SUFFIXES = {"archive": ".tar", "onnx": ".onnx", "torch": ".pt2"}


@app.command("list")
def list_models(limit: Limit = None, as_json: AsJson = False, url: Url = None) -> None:
    """List the models.

    Example: `credence models list`
    """
    with connect(url) as client:
        models = shown(client.models(), limit, as_json=as_json)
    if not models:
        note("no models yet: `credence train FILE --target COLUMN` makes one")
    print_json(models) if as_json else print_models(models)


@app.command()
def show(
    model: ModelArgument,
    version: Annotated[str | None, typer.Option(help="Number or alias; default: newest.")] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Show a version: its scores beside those of simple methods, its variants and its notes.

    Example: `credence models show concrete --version champion`
    """
    with connect(url) as client:
        answer = client.version(model, version)
    print_json(answer) if as_json else print_version(answer)


@app.command()
def card(
    model: ModelArgument,
    version: Annotated[str | None, typer.Argument(help="Number or alias; default: newest.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write it to this file, as HTML.")] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Show a version's model card: training, scores and known limits.

    Example: `credence models card concrete champion --html concrete.html`
    """
    with connect(url) as client:
        wanted = version or client.version(model)["version"]
        if html is not None:
            html.write_text(client.card_page(model, wanted), encoding="utf-8")
            return
        answer = client.card(model, wanted)
    print_json(answer) if as_json else print_card(answer)


@app.command()
def export(  # noqa: PLR0917 - an option per argument
    model: ModelArgument,
    version: Annotated[str | None, typer.Argument(help="Number or alias; default: newest.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The file; default: MODEL.tar, .onnx or .pt2."),
    ] = None,
    format: Annotated[Format, typer.Option(help="A tar for `import`, or a graph.")] = "archive",
    posterior: Annotated[
        Posterior, typer.Option(help="Of a graph: weight draws, or their mean.")
    ] = "full",
    prune: Annotated[float, typer.Option(help="Of a graph: the pruned variant.")] = 0.0,
    samples: Annotated[
        int, typer.Option(min=1, max=10_000, help="Of a graph: number of draws.")
    ] = 100,
    url: Url = None,
) -> None:
    """Write a version to a file: a tar that `import` reads, or a graph for ONNX Runtime or torch.

    Example: `credence models export concrete champion --format onnx -o concrete.onnx`
    """
    path = output or Path(model + SUFFIXES[format])
    with connect(url) as client, tempfile.TemporaryDirectory() as folder:
        archive = path if format == "archive" else Path(folder) / "model.tar"
        client.export_version(model, version or client.version(model)["version"], archive)
        if format != "archive":
            _convert(archive, path, format, posterior, prune, samples)
    typer.echo(f"{path}: {path.stat().st_size} bytes")


def _convert(archive: Path, path: Path, *options: Any) -> None:
    """Convert here, not in the service: it takes seconds, and packages that a service lacks."""
    if not find_spec("credence.serving"):
        raise typer.BadParameter(
            "graphs are made with torch: in a clone, "
            "pip install ./credence ./credence/scoring '.[export]'"
        )
    try:
        import_module("credence.serving.exports").convert(archive, path, *options)
    except (ValueError, ModuleNotFoundError) as error:
        typer.echo(f"not exported: {error}", err=True)
        raise typer.Exit(2) from error


@app.command("import")
def import_(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="A file that `export` wrote.")
    ],
    name: Annotated[str, typer.Option(help="Name of the model that gets the version.")],
    alias: Annotated[str | None, typer.Option(help="Alias for the new version.")] = None,
    url: Url = None,
) -> None:
    """Make a version from a file that `export`, or an estimator's `save`, has written.

    Example: `credence models import concrete.tar --name concrete --alias champion`
    """
    with connect(url) as client:
        version = client.import_version(file, name, alias)
    typer.echo(f"{name} version {version['version']}")


@app.command()
def alias(
    model: ModelArgument,
    alias: Annotated[str, typer.Argument(help="The alias, for example champion.")],
    version: Annotated[int | None, typer.Argument(help="The version that it names.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the alias.")] = False,
    url: Url = None,
) -> None:
    """Set or remove an alias of a version.

    Example: `credence models alias concrete champion 3`
    """
    if remove == (version is not None):
        raise typer.BadParameter("give either a VERSION or --remove")
    with connect(url) as client:
        if version is None:
            client.delete_alias(model, alias)
        else:
            client.set_alias(model, alias, version)


@app.command()
def delete(
    model: ModelArgument,
    version: Annotated[str | None, typer.Option(help="Only this version.")] = None,
    yes: Yes = False,
    url: Url = None,
) -> None:
    """Delete a model with all its versions, or one version.

    Example: `credence models delete concrete --version 2`
    """
    what = f"version {version} of {model}" if version else f"{model} with all its versions"
    if not yes:
        typer.confirm(f"Delete {what}?", abort=True)
    with connect(url) as client:
        if version is None:
            client.delete_model(model)
        else:
            client.delete_version(model, version)
    typer.echo(f"deleted {what}")


add_share(app, "models", "concrete")
