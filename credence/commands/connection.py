"""The connection of a command to the service, and the exit codes of errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from credence.commands.parameters import in_options
from credence.exceptions import CredenceAPIError, ServiceUnreachable
from credence.rendering import fail

if TYPE_CHECKING:
    from credence.client import Client

EXIT_REFUSED = 1
EXIT_UNREACHABLE = 3
RETRIES = 2  # about a second, for a person at a terminal


@contextmanager
def connect(url: str | None) -> "Iterator[Client]":
    """A client for the block; an error of the service ends the command with a message."""
    import httpx  # noqa: PLC0415 - a third of a command's start-up time, with the client

    from credence.client import Client  # noqa: PLC0415

    try:
        with Client(url, retries=RETRIES, progress=False) as client:  # commands draw their own bars
            yield client
    except CredenceAPIError as error:
        request = f" (request {error.request_id})" if error.request_id else ""
        fail(f"{in_options(str(error))}{request}{_advice(error)}", EXIT_REFUSED)
    except ServiceUnreachable as error:
        fail(str(error), EXIT_UNREACHABLE)
    except httpx.InvalidURL as error:
        raise typer.BadParameter(f"{url!r}: {error}", param_hint="--url") from None


def _advice(error: CredenceAPIError) -> str:
    """What to do about an error on the command line."""
    match error.status:
        case 401:
            return "\ngive the key in CREDENCE_KEY; `credence keys create` makes one"
        case 404:
            return "\n`credence models list`, `datasets list` and `jobs list` show what there is"
        case _:
            return ""
