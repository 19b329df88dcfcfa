"""What a process learns of versions does not grow with all versions that there ever were."""

import asyncio
from datetime import UTC, datetime

import pytest

from app.serving import versions
from app.serving.versions import ALL, VersionLookup
from core.access.callers import View
from core.exceptions import Unavailable
from core.registry.registry import Version


def test_versions_that_nobody_asks_for_any_more_are_forgotten() -> None:
    """The newest stay known while the database is away."""
    is_away = False

    def look_up(_: View, model: str, reference: int | str | None) -> Version:
        if is_away:
            raise Unavailable("the database is away")
        return Version(
            model=model,
            owner="",
            version=int(model[1:]),
            aliases=(),
            description={},
            dataset="ds",
            job="job",
            created_at=datetime.now(UTC),
            artifact_key=f"models/{model}",
        )

    async def ask() -> None:
        nonlocal is_away
        found = VersionLookup(look_up)
        for number in range(2 * versions.MAX_KNOWN):
            await found.find(ALL, f"m{number}", None)
        assert len(found._known) <= versions.MAX_KNOWN
        found.clear()
        is_away = True
        assert (await found.find(ALL, f"m{number}", None)).version == number
        with pytest.raises(Unavailable):
            await found.find(ALL, "m0", None)

    asyncio.run(ask())
