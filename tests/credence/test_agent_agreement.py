"""The agents' tools beside what they repeat: the guide, the findings, the methods."""

import re
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from app.access.required_scopes import required
from core.access.keys import Scope
from core.datasets.findings.advice import contradicts
from credence.agents.brief import rounded, scores
from credence.agents.estimate import Effort
from credence.agents.server import TOOLS
from credence.agents.training import Method
from credence.fixes import joined
from models.config import Effort as ServiceEffort
from models.config.methods import MethodConfig

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "agents.md"


def test_the_guide_has_every_tool_with_its_scope() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+ \| `(\w+)` \|$", GUIDE.read_text(), re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(tool.title() for tool in TOOLS)
    routes = {
        "predict": ("POST", "/predict"),
        "send_feedback": ("POST", "/feedback"),
        "list_models": ("GET", "/models"),
        "model_card": ("GET", "/models/a/versions/1/card"),
        "rows_to_label": ("POST", "/models/a/acquire"),
        "train": ("POST", "/train"),
        "compare": ("POST", "/compare"),
        "job": ("GET", "/jobs/job_1"),
        "profile_data": ("POST", "/datasets"),
        "list_data": ("GET", "/datasets"),
    }
    assert {name: required(*routes[name]) for name in routes} == dict(rows)
    assert required("POST", "/mcp") == Scope.PREDICT


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


def test_answers_are_short_and_what_is_sent_back_is_not() -> None:
    found = rounded({"mean": 214853.525, "left": float("nan"), "values": {"id": 123456.789}})
    assert found == {"mean": 214850.0, "left": None, "values": {"id": 123456.789}}
    metrics = {"rmse": 1.5, "coverage": {"0.9": 0.87}, "conformal_coverage": {"0.9": 0.91}}
    assert scores(metrics) == {
        "rmse": 1.5,
        "coverage_of_90_percent_conformal_intervals": 0.91,
        "coverage_of_90_percent_credible_intervals": 0.87,
    }
