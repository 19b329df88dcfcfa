"""The official SDK's client: a session with the tools, over stdio or HTTP."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.credence.running import CREDENCE, environment

SECONDS = 250.0  # for an answer: a busy machine takes long to load the SDK


class Refused(Exception):
    """The tool's error, as the agent reads it."""


@dataclass(frozen=True)
class Session:
    """Calls tools."""

    client: Client

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        """The tool's answer; its text is the same object."""
        result = await self.client.call_tool(tool, arguments)
        text = result.content[0].text  # type: ignore[union-attr]
        if result.is_error:
            raise Refused(text)
        assert json.loads(text) == result.structured_content
        return result.structured_content


@asynccontextmanager
async def over_stdio(url: str, **settings: str) -> AsyncIterator[Session]:
    """A session with the process `credence mcp`, which speaks to a service."""
    command = StdioServerParameters(
        command=CREDENCE[0],
        args=[*CREDENCE[1:], "mcp", "--url", url],
        env=environment(**settings),
        cwd=Path.cwd(),
    )
    async with Client(command, read_timeout_seconds=SECONDS) as client:
        yield Session(client)


@asynccontextmanager
async def over_http(url: str, key: str = "", **headers: str) -> AsyncIterator[Session]:
    """A session with the service's own `/mcp`."""
    if key:
        headers["Authorization"] = f"Bearer {key}"
    async with httpx2.AsyncClient(headers=headers, timeout=SECONDS) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, read_timeout_seconds=SECONDS) as client:
            yield Session(client)
