"""The tools that list data sets and models."""

from typing import Annotated, Any

from pydantic import Field

from credence.agents.brief import present
from credence.agents.tool import Tool
from credence.client import AsyncClient
from credence.types import Json

MAX_LISTED = 50
SCANNED = 5_000  # entries that a search in a list looks through


class ListData(Tool):
    """List the data sets, newest first: id, name, number of rows and columns."""

    contains: Annotated[str, Field(description="only those whose name contains this text")] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED, description="how many")] = 20

    async def run(self, client: AsyncClient) -> Json:
        """The newest data sets with such a name."""
        found, more = await _searched(client.datasets(), self.contains, self.limit)
        listed = [
            {
                "dataset": one["id"],
                "name": one["name"],
                "rows": one["rows"],
                "columns": one.get("num_columns", len(one["columns"])),
                "created_at": one["created_at"],
            }
            for one in found
        ]
        return {"datasets": listed} | present(more="GET /datasets lists all" if more else None)


class ListModels(Tool):
    """List the models by name, each with its newest version, its task and its target."""

    contains: Annotated[str, Field(description="only those whose name contains this text")] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED, description="how many")] = 20

    async def run(self, client: AsyncClient) -> Json:
        """The models with such a name."""
        found, more = await _searched(client.models(), self.contains, self.limit)
        listed = [
            {
                "model": one["name"],
                "newest_version": one["version"],
                "task": one["task"],
                "target": one["target"],
                "created_at": one["created_at"],
            }
            for one in found
        ]
        return {"models": listed} | present(more="GET /models lists all" if more else None)


async def _searched(listing: Any, contains: str, limit: int) -> tuple[list[Any], bool]:
    """The first entries whose name contains a text, and whether there may be more."""
    found: list[Any] = []
    seen = 0
    async for one in listing:
        seen += 1
        if contains.casefold() in one["name"].casefold():
            found.append(one)
        if len(found) > limit or seen >= SCANNED:
            return found[:limit], True
    return found, False
