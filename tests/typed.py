"""A plugin for `make test-typed`: the first case of each test function, as types are checked.

jaxtyping's check of a call costs more than most functions of `models` take, and a training makes
the same call thousands of times. The other cases of a function pass the same kinds of tensors.
"""

import typing

import pytest

# beartype refuses `Self` where jaxtyping decorates a method, not its class. pytest imports this
# before `models`, so its modules get a type variable instead: `Any` would be a field's type to
# pydantic.
typing.Self = typing.TypeVar("Self")  # type: ignore[assignment, misc]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect all cases of a function but its first."""
    first: dict[str, pytest.Item] = {}
    for item in items:
        first.setdefault(item.nodeid.partition("[")[0], item)
    kept = list(first.values())
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
