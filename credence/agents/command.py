"""`credence mcp`: the tools for agents, over standard input and output."""

from importlib.util import find_spec

import typer

from credence.commands.options import Url
from credence.rendering import fail

EXIT_NOT_INSTALLED = 2


def mcp(url: Url = None) -> None:
    """Serve tools for agents over the Model Context Protocol, on standard input and output.

    An agent's program starts this command. The service may be elsewhere; its key is `CREDENCE_KEY`.

    Example: `claude mcp add credence -- credence mcp --url http://127.0.0.1:8000`
    """
    if find_spec("mcp") is None:
        fail(
            "`credence mcp` needs the SDK of the protocol: pip install mcp",
            EXIT_NOT_INSTALLED,
        )
    import anyio  # noqa: PLC0415 - with the SDK, which takes seconds to load
    import httpx  # noqa: PLC0415

    from credence.agents.server import serve_stdio  # noqa: PLC0415

    try:
        anyio.run(serve_stdio, url)
    except httpx.InvalidURL as error:
        raise typer.BadParameter(f"{url!r}: {error}", param_hint="--url") from None
