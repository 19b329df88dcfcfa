"""A table that must be streamed is accepted, and refused where that is impossible."""

from typing import Any

import numpy as np
import pytest

from tests.app.conftest import MakeService
from tests.app.running import Service

ROWS = 200
X, NOISE = np.random.default_rng(0).normal(size=(2, ROWS))
COLUMNS = {"x": X.tolist(), "y": (X + NOISE).tolist()}


@pytest.fixture
def own(make_service: MakeService) -> Service:
    return make_service(training_memory_bytes=1024)


def test_a_table_beyond_the_memory_is_accepted(own: Service) -> None:
    answer = own.post("/train", {"model": "m", "target": "y", "data": {"columns": COLUMNS}})
    assert answer.status_code == 202, answer.text


@pytest.mark.parametrize(
    ("route", "given", "path", "what"),
    [
        ("/train", {"method": {"kind": "swag"}}, "/method/kind", "method 'swag'"),
        ("/train", {"target": ["x", "y"]}, "/target", "a training of several targets"),
        ("/compare", {"methods": ["bbb", "map"]}, "/methods", "a comparison"),
    ],
)
def test_what_cannot_be_streamed_is_refused(
    own: Service, route: str, given: dict[str, Any], path: str, what: str
) -> None:
    columns = COLUMNS | {"z": NOISE.tolist()}
    answer = own.post(route, {"model": "m", "target": "y", "data": {"columns": columns}, **given})
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert error["path"] == path
    assert "CREDENCE_TRAINING_MEMORY_BYTES=1024" in error["message"]
    assert f"{what} cannot be streamed from disk" in error["message"]
