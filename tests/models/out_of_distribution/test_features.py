"""One false-alarm rate for columns and combinations, whatever the rows; and what is named."""

import math

import numpy as np
import pytest
import torch

from models.config import FeatureConfig
from models.evaluation.detector import SURPRISE, Detector
from models.features.columns import Columns
from models.features.feature_encoder import FeatureEncoder
from models.features.rows import Rows
from models.out_of_distribution.row_reasons import find_reasons
from models.out_of_distribution.surprise import Surprise

TYPES = {"height": "number", "weight": "number", "place": "category"}
FEATURES = tuple(FeatureConfig(name=name, type=kind) for name, kind in TYPES.items())  # type: ignore[arg-type]
RATE = 0.05


def people(rows: int, seed: int) -> Columns:
    """Heights and weights with correlation 0.9; heavy tails, so that columns flag usual rows."""
    random = np.random.default_rng(seed)
    height, other = random.standard_t(5, (2, rows))
    return {
        "height": height,
        "weight": 0.9 * height + math.sqrt(1 - 0.9**2) * other,
        "place": np.array(["north", "south"], object)[random.integers(0, 2, rows)],
    }


@pytest.fixture(scope="module")
def known() -> tuple[FeatureEncoder, Surprise]:
    learned = people(800, 0)
    encoder = FeatureEncoder.fit(FEATURES, TYPES, learned, pieces=True, rate=RATE)
    x = encoder.encode_inputs(learned)
    begun = Surprise.begin(encoder, TYPES, learned, RATE)
    return encoder, begun.fit(Rows(x, torch.zeros(800)), seed=0)


def surprises(known: tuple[FeatureEncoder, Surprise], columns: Columns) -> np.ndarray:
    encoder, scores = known
    x = encoder.encode(columns)
    return scores(x, encoder.column_score(x)).numpy()


def test_the_false_alarm_rate_is_that_of_all_parts_together(
    known: tuple[FeatureEncoder, Surprise],
) -> None:
    """For 400 draws of 99 held-out rows: P(a new row exceeds the bound) = 5/100 (conformal).

    The share above the fifth-largest of 99 is Beta(5, 95): its deviation is 0.0217, that of the
    mean of 400 is 0.0011; the 20,000 rows for all draws add 0.0015. Four deviations are 0.0075.
    """
    pool = surprises(known, people(20_000, 1))
    random = np.random.default_rng(2)
    alarms = [
        (pool > Detector.fit(SURPRISE, random.choice(pool, 99, replace=False), RATE).threshold)
        for _ in range(400)
    ]
    assert np.mean(alarms) == pytest.approx(RATE, abs=0.0075)


def test_a_strange_combination_is_flagged_and_its_columns_are_named(
    known: tuple[FeatureEncoder, Surprise],
) -> None:
    """Each value is within 1.5 deviations of the mean; together they are 9 deviations off."""
    encoder, scores = known
    detector = Detector.fit(SURPRISE, surprises(known, people(999, 3)), RATE)
    rows: Columns = {
        "height": np.array([1.5, 1.5]),
        "weight": np.array([-1.5, 1.5]),
        "place": np.array(["north", "north"], object),
    }
    flagged = detector.flags(surprises(known, rows))
    assert flagged.tolist() == [True, False]
    found = find_reasons(encoder, rows, flagged, scores)
    assert {one.column for one in found[0]} == {"height", "weight"}
    assert {one.code for one in found[0]} == {"unusual_combination"}
    assert not found[1]


def test_images_are_compared_with_the_directions_of_training() -> None:
    """Smooth 6 × 6 images; the same pixels in another order are as bright."""
    random = np.random.default_rng(0)
    waves = np.sin(np.linspace(0, 3, 36)[None] * random.uniform(0.5, 2, (700, 1)))
    images = (waves + 0.05 * random.normal(size=waves.shape)).reshape(-1, 6, 6)
    features, types = (FeatureConfig(name="image", type="tensor"),), {"image": "tensor"}
    learned, usual = {"image": images[:400]}, {"image": images[400:]}
    mixed = images[400:].reshape(300, 36)[:, random.permutation(36)].reshape(300, 6, 6)
    encoder = FeatureEncoder.fit(features, types, learned, rate=RATE)
    begun = Surprise.begin(encoder, types, learned, RATE)
    scores = begun.fit(Rows(encoder.encode_inputs(learned), torch.zeros(400)), seed=0)
    detector = Detector.fit(SURPRISE, surprises((encoder, scores), usual), RATE)
    assert detector.flags(surprises((encoder, scores), {"image": mixed})).mean() > 0.95
    again = Surprise.unpack(scores.pack(), encoder)
    assert (
        surprises((encoder, again), usual).tolist() == surprises((encoder, scores), usual).tolist()
    )
