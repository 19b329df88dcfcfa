"""Real services that are attacked: one without keys, one with a key for everybody in the story."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from core.access.keys import Keys, Scope
from core.database.database import migrate, opened
from core.settings import load_settings
from tests.credence.running import Service, serving
from tests.waiting import PATIENCE

ADMIN = "an-admin-key-of-some-length"


@dataclass(frozen=True)
class Guarded:
    """A service that needs keys, and the key of each caller.

    Anna and Ben have a scope `train` each and are owners of their own; Eve may only predict, as an
    owner of her own.
    """

    service: Service
    anna: str
    ben: str
    eve: str
    admin: str = ADMIN

    @property
    def url(self) -> str:
        return self.service.url

    def client(self, key: str) -> httpx.Client:
        """A client with this key."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE)


@pytest.fixture(scope="session")
def open_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """`credence serve` on a loopback address, without keys."""
    with serving(tmp_path_factory.mktemp("open"), CREDENCE_LOG_FORMAT="json") as running:
        yield running


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """`credence serve` with keys."""
    directory = tmp_path_factory.mktemp("guarded")
    file = directory / "key"
    file.write_text(ADMIN)
    made = make_keys(directory / "data")
    settings = {"CREDENCE_ADMIN_KEY_FILE": str(file), "CREDENCE_LOG_FORMAT": "json"}
    with serving(directory, **settings) as running:
        yield Guarded(running, **made)


def make_keys(data_dir: Path) -> dict[str, str]:
    """The text of a key for each caller."""
    scopes = {"anna": Scope.TRAIN, "ben": Scope.TRAIN, "eve": Scope.PREDICT}
    settings = load_settings(data_dir=data_dir)
    settings.prepare_data_dir()
    with opened(settings.sqlalchemy_url) as database:
        migrate(database)
        keys = Keys(database)
        return {name: keys.create(name, scope, owner=name)[1] for name, scope in scopes.items()}
