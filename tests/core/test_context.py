"""All services of a process, opened together."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from core.context import open_context
from core.exceptions import Unavailable
from core.settings import Settings, load_settings


def test_a_context_is_ready_to_use(settings: Settings) -> None:
    context = open_context(settings)
    dataset, created = context.datasets.add_columns("small", {"x": [1, 2], "y": [3, 4]})
    assert created
    for check in (context.database.check, context.store.check, context.queue.check):
        check()
    context.close()
    again = open_context(settings)
    assert again.datasets.get(dataset.id) == dataset
    again.close()


def test_opening_connects_to_no_broker(tmp_path: Path) -> None:
    """A service starts, and predicts, while the broker is away."""
    settings = load_settings(data_dir=tmp_path, broker_url="redis://127.0.0.1:1/0")
    open_context(settings).close()


def test_without_a_database_there_is_no_context(tmp_path: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:1/none"
    with pytest.raises(Unavailable, match="the database does not answer"):
        open_context(load_settings(data_dir=tmp_path, database_url=url))


def test_closing_leaves_no_connection(settings: Settings) -> None:
    context = open_context(settings)
    engine: Engine = context.database.engine
    context.close()
    assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]
