"""Marks of what tests need, and a watch over those that do not have theirs."""

from collections.abc import Iterator

import pytest
import torch

from tests.needs import Watch, mark

WATCH = pytest.StashKey[Watch]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[WATCH] = Watch()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark(items)
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no GPU with CUDA is here"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.config.stash[WATCH].begin()
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield
    missing = item.config.stash[WATCH].started() - {each.name for each in item.iter_markers()}
    assert not missing, f"the test lacks the marks {sorted(missing)}: see tests/needs.py"
