"""All services of a process, opened together."""

from pathlib import Path

import pytest

from core.context import open_context
from core.exceptions import Unavailable
from core.settings import load_settings


def test_a_service_starts_without_its_broker_and_not_without_its_database(tmp_path: Path) -> None:
    away = load_settings(data_dir=tmp_path, broker_url="redis://127.0.0.1:1/0")
    open_context(away).close()
    url = "postgresql://nobody@127.0.0.1:1/none"
    with pytest.raises(Unavailable):
        open_context(load_settings(data_dir=tmp_path, database_url=url))
