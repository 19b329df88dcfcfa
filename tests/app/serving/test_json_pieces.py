"""Arrays in pieces: the same bytes as in one."""

from typing import Any

import numpy as np
import orjson
import pytest

from app.serving.json_pieces import PIECE_VALUES, in_pieces

RANDOM = np.random.default_rng(0)
LARGE = PIECE_VALUES + 7


@pytest.mark.parametrize(
    "value",
    [
        RANDOM.normal(size=3 * LARGE),
        RANDOM.normal(size=(5, LARGE)).astype(np.float32),
        RANDOM.normal(size=(LARGE, 3)),
        RANDOM.normal(size=(2, 3, LARGE)),
        RANDOM.integers(-9, 9, size=(LARGE, 2)),
        RANDOM.random(size=LARGE) < 0.5,
        np.where(RANDOM.random(size=LARGE) < 0.1, np.nan, 1.0),
        np.zeros((LARGE, 0)),
        np.arange(3),
        {"a": {"b": RANDOM.normal(size=LARGE)}, "c": [np.ones(LARGE), "text", None], "d": 1.5},
        [1.0] * 2000,
    ],
    ids=lambda value: type(value).__name__ + str(getattr(value, "shape", "")),
)
def test_pieces_are_the_same_json(value: Any) -> None:
    option = orjson.OPT_SERIALIZE_NUMPY
    assert orjson.dumps(in_pieces(value), option=option) == orjson.dumps(value, option=option)
