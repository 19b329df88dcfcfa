"""Data sets in SQLite and a folder, shared by the tests of a module."""

from collections.abc import Iterator

import pytest

from core.database.database import Database, migrate
from core.datasets import apart
from core.datasets.datasets import Datasets
from core.storage import DirectoryStore


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Datasets]:
    """Reads every file here: tests/core/datasets/test_apart.py is about children, a second each."""
    folder = tmp_path_factory.mktemp("corpus")
    database = Database(f"sqlite:///{folder / 'corpus.db'}")
    migrate(database)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            apart, "_read_here", lambda file, options, at: file.read(at.max_bytes, options)
        )
        yield Datasets(database, DirectoryStore(folder / "store"))
    database.dispose()
