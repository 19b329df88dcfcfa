"""Archives in a child: what is found there comes back, and it takes no more than it may."""

from pathlib import Path

import pytest

from app.examination import CHILD_BYTES, USE, examined
from core.exceptions import Invalid, TooLarge
from core.process.memory_budget import MemoryBudget
from core.registry import archives
from tests.attacks import artifacts

pytestmark = pytest.mark.stack

GIBIBYTE = 2**30
LITTLE = (CHILD_BYTES + 2**20) * 4 // 3  # a megabyte besides what the child holds


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return received(tmp_path, artifacts.files())


def received(folder: Path, files: dict[str, bytes]) -> Path:
    sent, directory = folder / "sent.tar", folder / "artifact"
    sent.write_bytes(artifacts.packed(files))
    archives.unpack(sent, directory, GIBIBYTE)
    return directory


def test_the_child_reads_and_not_this_process(directory: Path) -> None:
    """Every error of the reader is one of the archive."""
    (directory / "prune-0.safetensors").write_bytes(b"x")
    with pytest.raises(Invalid, match=r"prune-0\.safetensors"):
        examined(directory, "line", MemoryBudget(4 * GIBIBYTE), "anna")


def test_what_takes_more_memory_than_there_is_is_refused(tmp_path: Path) -> None:
    large = artifacts.with_card_member(b'"' + b"x" * 3 * 2**20 + b'"')
    directory, memory = received(tmp_path, large), MemoryBudget(LITTLE)
    with pytest.raises(TooLarge, match="CREDENCE_MEMORY_BYTES"):
        examined(directory, "line", memory, "anna")
    assert memory.reserved() == {USE: 0}
