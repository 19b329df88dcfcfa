"""The service's end of a command: its address, and what its refusals become."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import typer

from credence.client import Client
from credence.exceptions import CredenceAPIError, ServiceUnreachable
from credence.rendering import fail

EXIT_REFUSED = 1
EXIT_UNREACHABLE = 3


@contextmanager
def connect(url: str) -> Iterator[Client]:
    """A client for the block; what the service refuses there ends the command with a message."""
    try:
        with Client(url) as client:
            yield client
    except CredenceAPIError as error:
        request = f" (request {error.request_id})" if error.request_id else ""
        fail(f"{error}{request}", EXIT_REFUSED)
    except ServiceUnreachable as error:
        hint = "start one with `credence serve`, or give its address with --url or CREDENCE_URL"
        fail(f"{error}\n{hint}", EXIT_UNREACHABLE)
    except httpx.InvalidURL as error:
        raise typer.BadParameter(f"{url!r}: {error}", param_hint="--url") from None
