"""What encoders learn from rows with whole weights is what they learn from repeated rows."""

from dataclasses import asdict

import numpy as np
import pytest
import torch

from models.config import FeatureConfig, LikelihoodConfig
from models.features import moments
from models.features.categories import target_scores
from models.features.feature_encoder import FeatureEncoder
from models.features.target_shapes import describe_target
from models.features.targets import NumberTarget
from tests.models.conftest import assert_close

ROWS = 150
RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.integers(1, 5, ROWS).astype(float)
TIMES = WEIGHTS.astype(int)
SKEWED = np.exp(RANDOM.normal(size=ROWS))
DRIFTING = np.where(RANDOM.random(ROWS) < 0.2, 0.0, RANDOM.normal(size=ROWS).round(1))
LEVELS = np.array([f"l{i}" for i in RANDOM.integers(0, 60, ROWS)], dtype=object)
TIMES_OF_DAY = np.datetime64("2026-01-01", "us") + (
    RANDOM.integers(0, 20_000, ROWS) * np.timedelta64(60_000_000, "us")
)
KINDS = {"s": "number", "d": "number", "l": "category", "t": "datetime"}
COLUMNS = {
    "s": np.where(np.arange(ROWS) % 17 == 0, np.nan, SKEWED),
    "d": DRIFTING,
    "l": np.where(np.arange(ROWS) % 13 == 0, None, LEVELS),
    "t": TIMES_OF_DAY,
}
FEATURES = tuple(FeatureConfig(name=name, type=kind) for name, kind in KINDS.items())  # type: ignore[arg-type]


def _repeat(values: np.ndarray) -> np.ndarray:
    return np.repeat(values, TIMES, axis=0)


@pytest.mark.parametrize(("pieces", "classes"), [(False, False), (True, False), (True, True)])
def test_encoders_are_those_of_repeated_rows(pieces: bool, classes: bool) -> None:
    """Means, deviations, power, scores, edges and their centres, slots, effects, new levels."""
    targets = np.digitize(SKEWED, [0.5, 1.5]) if classes else SKEWED
    kinds = dict(KINDS)
    scores = target_scores(targets, classes=classes, weights=WEIGHTS) if pieces else None
    found = FeatureEncoder.fit(
        FEATURES, kinds, COLUMNS, pieces=pieces, targets=scores, rate=0.3, weights=WEIGHTS
    )
    many = {name: _repeat(values) for name, values in COLUMNS.items()}
    other = target_scores(_repeat(targets), classes=classes) if pieces else None
    wanted = FeatureEncoder.fit(FEATURES, kinds, many, pieces=pieces, targets=other, rate=0.3)
    assert_close(asdict(found), asdict(wanted))
    if scores is not None and other is not None:
        folds = np.arange(ROWS) % 4
        by_fold = found.by_fold(COLUMNS, scores, folds, WEIGHTS)
        assert by_fold
        one = found.encode_folds(by_fold, COLUMNS, folds)
        by_fold = wanted.by_fold(many, other, _repeat(folds))
        two = wanted.encode_folds(by_fold, many, _repeat(folds))
        index = torch.arange(ROWS).repeat_interleave(torch.from_numpy(TIMES))
        torch.testing.assert_close(one[index], two, rtol=1e-4, atol=1e-4)


LIKELIHOOD = LikelihoodConfig(kind="mixture", components=3)


@pytest.mark.parametrize(
    "values", [SKEWED, DRIFTING, np.round(5 * SKEWED), RANDOM.beta(2, 3, ROWS)]
)
def test_targets_are_those_of_repeated_rows(values: np.ndarray) -> None:
    """Support, whole numbers, atoms, scales, and mean and deviation on each of them."""
    found = describe_target(values, None, LIKELIHOOD, WEIGHTS)
    wanted = describe_target(_repeat(values), None, LIKELIHOOD)
    assert_close([asdict(one) for one in found], [asdict(one) for one in wanted])
    assert_close(
        asdict(NumberTarget.fit(values, WEIGHTS)), asdict(NumberTarget.fit(_repeat(values)))
    )


def test_quantiles_are_those_of_repeated_rows() -> None:
    shares = [0.0, 0.05, 0.5, 0.9, 1.0]
    found = moments.quantile(SKEWED, shares, WEIGHTS)
    assert found == pytest.approx(np.quantile(_repeat(SKEWED), shares), rel=1e-9)
