"""Webhooks of two owners, on both databases."""

from collections.abc import Callable

import pytest

from core.access.callers import Caller, View
from core.database.database import Database
from core.webhooks.receivers import read_rules
from core.webhooks.webhooks import Webhooks

RULES = read_rules("hooks.example.org")
URL = "https://hooks.example.org/credence"

Of = Callable[[str], Webhooks]


@pytest.fixture
def of(database: Database) -> Of:
    """The webhooks as an owner sees them."""

    def find(owner: str) -> Webhooks:
        return Webhooks(database, RULES, Caller(View(owner, sees_all=False), actor=owner))

    return find
