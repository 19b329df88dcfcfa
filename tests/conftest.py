"""Marks of whole folders, and one profile of Hypothesis.

The gate, `make test`, runs the cases without a mark; docs/contributing.md has the other targets. A
file whose cases need the same says so in `pytestmark`; the files of these folders need not.
"""

import re
from pathlib import Path

import pytest
import torch
from hypothesis import settings

import worker  # noqa: F401 - before joblib, as there

FOLDERS = {
    "attacks": "stack",
    "chaos": "stack",
    "credence/agents": "stack",
    "credence/commands": "stack",
    "credence/serving": "stack",
    "engines": "engines",
    "fuzz": "stack",
    "integration": "docker",
    "oidc": "stack",
}

# The same examples in each run, however slow the machine is.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no folder whose mark `-m "not (…)"` leaves out: its libraries take long to import."""
    left_out = re.fullmatch(r"not \((.*)\)", config.option.markexpr)
    here = Path(__file__).parent
    if left_out is None or not collection_path.is_relative_to(here):
        return None
    mark = FOLDERS.get(collection_path.relative_to(here).as_posix())
    return mark in left_out[1].split(" or ") or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of a folder, and skip those that need a GPU where there is none."""
    here = Path(__file__).parent
    for item in items:
        if not item.path.is_relative_to(here):
            continue  # a page of the documentation
        name = item.path.relative_to(here).as_posix()
        for folder, mark in FOLDERS.items():
            if name.startswith(f"{folder}/"):
                item.add_marker(mark)
        if item.get_closest_marker("gpu") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="no GPU with CUDA is here"))
