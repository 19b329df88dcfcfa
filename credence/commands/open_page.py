"""`credence open`: the dashboard's page of a model, a job or a data set."""

import os
import webbrowser
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from credence.commands.completion import names_and_ids
from credence.commands.connection import connect
from credence.commands.options import Url
from credence.rendering import note

if TYPE_CHECKING:
    from credence.client import Client

HOME = "/"


def open_page(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL|JOB|DATASET]",
            help="A model's name, or an id. Default: what the newest job has made.",
            autocompletion=names_and_ids,
        ),
    ] = None,
    version: Annotated[
        str | None, typer.Option(help="Of a model: number or alias; default: newest.")
    ] = None,
    print_: Annotated[
        bool, typer.Option("--print", help="Print the address, and open no browser.")
    ] = False,
    url: Url = None,
) -> None:
    """Open the page of a model, a job or a data set in the browser.

    Without a browser, as on a server, it prints the page's address.

    Examples:

    `credence open`

    `credence open concrete --version champion`

    `credence open job_01 --print`
    """
    with connect(url) as client:
        address = client.url + (_newest(client) if what is None else _page(client, what, version))
    if print_ or not _opened(address):
        typer.echo(address)
    else:
        note(f"opened {address}")


def _newest(client: "Client") -> str:
    """The version that the newest job has made, or else the job; the first page if there is none.

    The service knows what was made last: no state is kept here.
    """
    job = next(client.jobs(), None)
    if job is None:
        return HOME
    if job["kind"] == "train" and job["version"] is not None:
        return f"/ui/models/{quote(job['model'])}/versions/{job['version']}"
    return f"/ui/jobs/{job['id']}"


def _page(client: "Client", what: str, version: str | None) -> str:
    """The path of a page; the service refuses what does not exist."""
    if what.startswith("job_"):
        return f"/ui/jobs/{client.job(what)['id']}"
    if what.startswith("ds_"):
        return f"/ui/datasets/{client.dataset(what)['id']}"
    found = client.version(what, version)
    return f"/ui/models/{quote(what)}/versions/{found['version']}"


def _opened(address: str) -> bool:
    """Whether a browser shows the page; one in the terminal is used only if BROWSER names it."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    takes_terminal = type(browser) is webbrowser.GenericBrowser and "BROWSER" not in os.environ
    return not takes_terminal and browser.open(address)
