"""Which trainings are streamed, and the words for those that cannot be."""

from dataclasses import replace
from typing import Any

import pytest

from models.config import (
    FeatureConfig,
    MLPConfig,
    ModelConfig,
    SWAGConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile
from models.tabular.preparation import prepare
from models.tabular.streaming.limits import encoded_bytes, is_streamed
from tests.models.tabular.streaming.tables import TYPES, config_of, make, profiles

PLAIN = ModelConfig(
    target="y", task="regression", features=(FeatureConfig(name="x", type="number"),)
)
COLUMNS = {
    "x": ColumnProfile(name="x", type="number"),
    "image": ColumnProfile(name="image", type="tensor", shape=(28, 28)),
}


ONCE: dict[str, Any] = {
    "network": MLPConfig(hidden=(8,)),
    "training": TrainingConfig(epochs=2),
}


@pytest.mark.parametrize("given", [{}, ONCE])
def test_the_estimate_is_an_upper_bound(given: dict[str, Any]) -> None:
    columns = make(1_000)
    config = config_of(columns, **given)
    problem = prepare(columns, TYPES, config)
    sets = (problem.rows, problem.stopping, problem.calibration, problem.scores)
    actual = sum(4 * rows.inputs.numel() for rows in sets if rows is not None)
    known = {profile.name: profile for profile in profiles(columns)}
    assert actual <= encoded_bytes(config, known, 1_000) <= 4 * actual


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"task": "forecasting"}, "/task"),
        ({"method": SWAGConfig(kind="swag")}, "/method/kind"),
        ({"training": TrainingConfig(refit=True)}, "/training/refit"),
        ({"features": (FeatureConfig(name="image", type="tensor"),)}, "/features"),
    ],
)
def test_what_cannot_be_streamed_is_named(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidData) as raised:
        is_streamed([replace(PLAIN, **changes)], COLUMNS, 1_000_000, 2**20)
    assert raised.value.path == path
    assert "CREDENCE_TRAINING_MEMORY_BYTES=1048576" in raised.value.message
