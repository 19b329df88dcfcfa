"""Examines a model's archive in a child process with limits, so that none harms this one.

There its JSON is parsed, its tensors are read, every variant predicts and its card is rendered.
Checks of sizes would not do: a small archive may describe a network whose prediction takes much.
"""

from collections.abc import Hashable
from pathlib import Path
from typing import BinaryIO

from app.schemas.card import CardResponse
from app.schemas.models import VersionResponse
from app.ui.card.page import render_card
from core.clock import now
from core.database.schema import Json
from core.exceptions import Invalid, TooLarge
from core.process.confined import Limits, run
from core.process.memory_budget import WAIT_SECONDS, MemoryBudget
from core.registry import cards, imports
from core.registry.documents import loaded_bytes
from core.registry.imports import Imported
from core.registry.registry import Version

USE = "imports"
CHILD_BYTES = 2**28  # that a child holds after its imports, torch among them
BASE_BYTES = 2**29  # of address space that predictions take besides what is read
CPU_SECONDS, BYTES_A_SECOND = 60, 2**22  # for any archive, and more for a large one
ADVICE = "(CREDENCE_MEMORY_BYTES): import it where there is more memory"


def examined(directory: Path, model: str, memory: MemoryBudget, caller: Hashable) -> Json:
    """The description of the version whose archive was unpacked into `directory`.

    Args:
        caller: with whom the memory is shared.

    Raises:
        Invalid: a file is wrong; the message names it.
        TooLarge: the model takes more memory or time than there is.
        Unavailable: too much memory is reserved by others.
    """
    size = loaded_bytes(directory)
    most = min(BASE_BYTES + size, memory.largest - CHILD_BYTES)
    if most <= 0:
        raise TooLarge(f"an archive takes {CHILD_BYTES} bytes of memory and more {ADVICE}")
    limits = Limits(most, 0, CPU_SECONDS + size // BYTES_A_SECOND)
    with memory.reserve(USE, most + CHILD_BYTES, WAIT_SECONDS, caller):
        arguments = {"directory": str(directory), "model": model}
        answer = run(f"{__name__}:work", arguments, limits, "the archive", advice=ADVICE).answer
    description: Json = answer["description"]
    return description


def work(file: BinaryIO, directory: str, model: str) -> Json:
    """In the child: examine the files; return the description. Nothing is written to `file`."""
    del file
    imported = imports.examine(Path(directory))
    check_shown(model, imported)
    return {"description": imported.description}


def check_shown(model: str, imported: Imported) -> None:
    """Raise `Invalid` if the version's response or its card cannot be rendered."""
    about = imported.description
    version = Version(
        model=model, owner="", version=1, aliases=(), description=about, dataset="", job="",
        created_at=now(), artifact_key="",
    )  # fmt: skip
    try:
        VersionResponse.model_validate(version).model_dump_json()
        recipe = cards.imported_recipe(version)
        card = CardResponse.model_validate(cards.compose(version, imported.card, recipe))
        render_card(card.model_dump(mode="json"))
    except MemoryError:
        raise
    except Exception as error:  # of any type: metrics or card.json have a wrong form
        raise Invalid([("/card.json", f"is not a model card: {error!r}"[:500])]) from error
