"""Webhooks of two owners, on both databases."""

from collections.abc import Callable

import pytest

from core.database.database import Database
from core.webhooks.receivers import read_rules
from core.webhooks.webhooks import Webhooks
from tests.core.conftest import owner

RULES = read_rules("hooks.example.org")
URL = "https://hooks.example.org/credence"

Of = Callable[[str], Webhooks]


@pytest.fixture
def of(database: Database) -> Of:
    """The webhooks as an owner sees them."""

    def find(name: str) -> Webhooks:
        return Webhooks(database, RULES, owner(name))

    return find
