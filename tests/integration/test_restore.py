"""A backup of the running stack, its loss with all volumes, and the way back, as the docs say."""

from pathlib import Path

import httpx
import pytest

from tests.integration.stack import PROJECT, ROOT, Stack, pages
from tests.integration.work import predict, train, wait

PAGE = ROOT / "docs" / "operations.md"


def commands(paragraph: str) -> str:
    """The lines of the block that follows a paragraph of the page, for the tests' own stack."""
    _, _, after = PAGE.read_text().partition(f"**{paragraph}.**")
    block = after.split("```sh\n", 1)[1].split("```", 1)[0]
    return block.replace("credence_store", f"{PROJECT}_store")


def test_a_backup_brings_back_what_was_there(
    stack: Stack, http: httpx.Client, dataset: str, reference: list[float], tmp_path: Path
) -> None:
    there = sorted(model["name"] for model in pages(http, "/models"))
    job = train(http, dataset, "through-a-loss", epochs=1000)
    wait(http, job, 60, "running")
    stack.shell(commands("Backup"), tmp_path)
    stack.shell(commands("Restore"), tmp_path)
    with stack.http() as again:  # with another first key: the secrets are not in the backup
        assert wait(again, job, 240)["status"] == "succeeded", "it goes on where the backup was"
        names = sorted(model["name"] for model in pages(again, "/models"))
        assert names == sorted({*there, "through-a-loss"})
        assert predict(again, "steady", seed=1)["mean"] == pytest.approx(reference, rel=1e-6)
    examined = stack.execute("api", "credence", "doctor")
    assert examined.returncode == 0, examined.stdout
