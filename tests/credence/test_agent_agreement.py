"""The agents' tools beside what they repeat: the guide, the findings, the methods."""

from itertools import product
from typing import get_args

import pytest

from core.datasets.findings.advice import contradicts
from credence.agents.estimate import Effort
from credence.agents.training import Method
from credence.fixes import joined
from models.config import Effort as ServiceEffort
from models.config.methods import MethodConfig


def test_fixes_that_the_service_calls_contradictory_are_not_joined() -> None:
    changes = [
        {"use": False}, {"type": "number"}, {"format": "%Y"}, {"missing": ["-"]}, {"use": True},
        {"levels": {"b": "a"}},
    ]  # fmt: skip
    for one, other in product(changes, repeat=2):
        fixes = [{"columns": [{"name": "x", **change}]} for change in (one, other)]
        if contradicts(one, other):
            with pytest.raises(ValueError, match="contradict"):
                joined(fixes)
        else:
            assert joined(fixes)[0] == [{"name": "x", **one, **other}]


def test_methods_and_efforts_are_those_of_the_service() -> None:
    kinds = {get_args(one)[1].tag for one in get_args(get_args(MethodConfig)[0])}
    assert set(get_args(Method)) == kinds
    assert get_args(Effort) == get_args(ServiceEffort)
