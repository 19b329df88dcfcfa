"""Knots and edges that an artifact may not hold."""

import json
from typing import Any

import pytest

from models.artifact.schema import parse_document
from models.exceptions import CorruptArtifact
from tests.fixtures import ARTIFACTS, RELEASES

PIECES = {"edges": [0.0, 1.0, 2.0], "centres": [0.5, 0.2]}
SCORES = {"knots": [0.0, 1.0], "scores": [-1.0, 1.0]}


def document(**fields: Any) -> dict[str, Any]:
    """The first release's model, whose first encoder is of a number, with new fields of it."""
    [version] = (RELEASES[0] / ARTIFACTS / "models" / "line").iterdir()
    found: dict[str, Any] = json.loads((version / "model.json").read_text())
    found["encoders"][0] |= fields
    return found


def test_quantiles_in_order_are_read() -> None:
    encoder = parse_document(document(pieces=PIECES, scores=SCORES, bound=8.0))["encoders"][0]
    assert encoder.form.width == 2 + 2


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"pieces": PIECES | {"edges": [0.0, 2.0, 2.0]}}, "pieces/edges"),
        ({"pieces": PIECES | {"centres": [0.5]}}, "pieces/centres"),
        ({"pieces": PIECES | {"centres": [0.5, 1.5]}}, "number/pieces/centres/1"),
        ({"scores": SCORES | {"knots": [1.0, 0.0]}}, "scores/knots"),
        ({"scores": SCORES | {"scores": [1.0, -1.0]}}, "scores/scores"),
        ({"scores": SCORES | {"scores": [1.0, 2.0, 3.0]}}, "scores/scores"),
        ({"bound": 0.0}, "number/bound"),
    ],
)
def test_others_are_refused_by_their_path(fields: dict[str, Any], path: str) -> None:
    with pytest.raises(CorruptArtifact) as refused:
        parse_document(document(**fields))
    assert str(refused.value.path).endswith(f"encoders/0/{path}")
