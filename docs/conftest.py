"""The documentation is run: each page's commands and snippets, in order, in a folder of its own.

`sh` blocks run in bash, `python` blocks share the page's names; both speak to one real service,
API and worker, that starts empty. What must not run stands behind `<!-- skip: next -->`, or is a
block of another language.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

from examples.demo_parts.service import running_service

DEFAULT_ADDRESS = "http://127.0.0.1:8000"
TOOLS = Path(sys.executable).parent
SECONDS = 1500.0  # for one command: training waits for its turn


def run_in_bash(example: Example) -> None:
    """Run a block; one that ends badly fails with what it said."""
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", example.parsed],
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=os.environ | {"PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}"},
    )
    example.namespace["output"] = ended.stdout
    assert ended.returncode == 0, f"{example.parsed}\n{ended.stdout}{ended.stderr}"


class ShellBlockParser(CodeBlockParser):
    """Commands, with the service's address in place of the usual one."""

    language = "sh"

    def evaluate(self, example: Example) -> None:
        example.parsed = example.parsed.replace(DEFAULT_ADDRESS, os.environ["CREDENCE_URL"])
        run_in_bash(example)


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a service that all pages share."""
    with running_service(tmp_path_factory.mktemp("docs") / "service.log") as client:
        yield client.url


@pytest.fixture(scope="module")
def folder(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[pytest.MonkeyPatch]:
    """A page's own folder, in which everything runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("page"))
        patch.setenv("CREDENCE_URL", address)
        patch.setenv("MPLBACKEND", "agg")
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
        yield patch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each page needs a service that trains; a command may take as long as its training does."""
    for item in items:
        if item.path.suffix == ".md":
            item.add_marker(pytest.mark.stack)
            item.add_marker(pytest.mark.timeout(SECONDS + 300))


def name_page(namespace: dict[str, Any]) -> None:
    """As in a notebook."""
    namespace["__name__"] = "__main__"


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), ShellBlockParser(), SkipParser()],
    patterns=["quickstart.md", "python.md", "concepts.md", "how-to/*.md"],
    fixtures=["folder"],
    setup=name_page,
).pytest()
