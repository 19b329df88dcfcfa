"""Marks of whole folders, one profile of Hypothesis, and what a run builds once.

The gate (`make test`) leaves out every mark but `slow`'s opposite: see the table of targets in
docs/contributing.md. A file whose cases need the same has `pytestmark`; these folders need none.
"""

from pathlib import Path

import pytest
import torch
from hypothesis import settings

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
