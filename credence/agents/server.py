"""The MCP server: lists the tools, and runs them with the client of whoever calls."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import mcp.types as protocol
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from pydantic import ValidationError

from credence import __version__
from credence.agents.brief import rounded
from credence.agents.card import ModelCard
from credence.agents.data import ProfileData, ProfileFile
from credence.agents.jobs import Job
from credence.agents.labels import RowsToLabel, SendFeedback
from credence.agents.listing import ListData, ListModels
from credence.agents.prediction import Predict
from credence.agents.tool import Tool, check_size, refusal
from credence.agents.training import Compare, Train
from credence.client import AsyncClient
from credence.exceptions import ClientError, CredenceAPIError
from credence.types import Json

INSTRUCTIONS = """\
Credence trains models on tables and predicts with two uncertainties: the noise in the data, and \
what the model does not know. The usual way: profile_data, fix what is wrong, train (first \
without, then with confirm), job until it has ended, model_card, predict. Rows that are marked \
unlike_training or abstained should go to a person. Answers are short: the pages and GET routes \
that they name have the rest."""

OTHERS: tuple[type[Tool], ...] = (
    *(Train, Compare, Job, Predict, ModelCard),
    *(RowsToLabel, SendFeedback, ListModels, ListData),
)
TOOLS: tuple[type[Tool], ...] = (ProfileData, *OTHERS)
LOCAL_TOOLS: tuple[type[Tool], ...] = (ProfileFile, *OTHERS)
"""Those of a server on the user's own machine, whose files it may read."""

Context = ServerRequestContext[Any, Any]
Connect = Callable[[Context], AbstractAsyncContextManager[AsyncClient]]


def make_server(tools: Sequence[type[Tool]], connect: Connect) -> Server[Any]:
    """A server of these tools.

    Args:
        connect: opens a client that sends the caller's requests.
    """
    by_name = {tool.title(): tool for tool in tools}

    async def list_tools(_: Context, __: Any) -> protocol.ListToolsResult:
        return protocol.ListToolsResult(tools=[described(tool) for tool in tools])

    async def call_tool(
        context: Context, call: protocol.CallToolRequestParams
    ) -> protocol.CallToolResult:
        tool = by_name.get(call.name)
        if tool is None:
            return failure(f"there is no tool {call.name!r}; there are {', '.join(by_name)}")
        try:
            check_size(call.arguments)
            arguments = tool.model_validate(call.arguments or {})
        except ValidationError as error:
            return failure(refusal(tool, error))
        except ValueError as error:
            return failure(str(error))
        try:
            async with connect(context) as client:
                return success(await arguments.run(client))
        except (ClientError, ValueError) as error:
            return failure(reason(error))

    return Server(
        "credence",
        version=__version__,
        title="Credence",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_stdio(url: str | None) -> None:
    """Serve the tools on standard input and output until the input ends."""

    @asynccontextmanager
    async def connect(_: Context) -> AsyncIterator[AsyncClient]:
        yield client

    server = make_server(LOCAL_TOOLS, connect)
    async with AsyncClient(url, progress=False) as client, stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


def described(tool: type[Tool]) -> protocol.Tool:
    """What a client is told of a tool."""
    return protocol.Tool(
        name=tool.title(),
        description=tool.description(),
        input_schema=tool.schema_of_arguments(),
        annotations=protocol.ToolAnnotations(
            read_only_hint=not tool.changes, destructive_hint=False, open_world_hint=False
        ),
    )


def success(answer: Json) -> protocol.CallToolResult:
    """The answer as an object, and as text for clients that read only this."""
    short = rounded(answer)
    text = json.dumps(short, ensure_ascii=False, separators=(",", ":"))
    return protocol.CallToolResult(
        content=[protocol.TextContent(type="text", text=text)], structured_content=short
    )


def failure(message: str) -> protocol.CallToolResult:
    """An error that the agent can read and correct."""
    return protocol.CallToolResult(
        content=[protocol.TextContent(type="text", text=message)], is_error=True
    )


def reason(error: Exception) -> str:
    """Why the service refuses, in terms of the tool's arguments, and what to do."""
    if not isinstance(error, CredenceAPIError):
        return str(error)
    said = [f"{_argument(one.path)}: {one.message}" for one in error.errors]
    said = said or [error.detail or error.title]
    match error.status:
        case 401:
            said.append("the key is set where this server is set up: CREDENCE_KEY or Authorization")
        case 404:
            said.append("list_models and list_data show what there is")
    return "\n".join(said)


def _argument(pointer: str) -> str:
    """`rows.0.area` for the JSON pointer `/inputs/0/area` into the body of a request."""
    path = pointer.strip("/").replace("/", ".") or "request"
    return path.replace("inputs", "rows", 1) if path.startswith("inputs") else path
