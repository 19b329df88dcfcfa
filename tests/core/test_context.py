"""All services of a process, opened together."""

from pathlib import Path

import pytest

from core.context import open_context
from core.exceptions import Unavailable
from core.settings import Settings, load_settings


def test_a_context_is_ready_to_use_and_closes(settings: Settings) -> None:
    context = open_context(settings)
    dataset, _ = context.datasets.add_columns("small", {"x": [1, 2], "y": [3, 4]})
    for check in (context.database.check, context.store.check, context.queue.check):
        check()
    engine = context.database.engine
    context.close()
    assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    again = open_context(settings)
    assert again.datasets.get(dataset.id) == dataset
    again.close()


def test_a_service_starts_without_its_broker_and_not_without_its_database(tmp_path: Path) -> None:
    away = load_settings(data_dir=tmp_path, broker_url="redis://127.0.0.1:1/0")
    open_context(away).close()
    url = "postgresql://nobody@127.0.0.1:1/none"
    with pytest.raises(Unavailable):
        open_context(load_settings(data_dir=tmp_path, database_url=url))
