"""Scores of strange rows against brute force and closed forms; bounds against their own rate."""

import numpy as np
import pytest
from scipy.stats import binom

from models.config import MLPConfig, ModelConfig, OutOfDistributionConfig, TrainingConfig
from models.evaluation.detector import SURPRISE, Detector
from models.features.columns import ColumnProfile
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

LABELS = ("alder", "beech", "oak")
RATE = 0.05


def plane(rows: int, seed: int) -> dict[str, np.ndarray]:
    """Three classes whose clouds touch."""
    random = np.random.default_rng(seed)
    label = random.integers(0, 3, rows)
    x = np.stack([random.normal(label, 0.5), random.normal(-label, 0.5)], axis=1)
    return {"x": x[:, 0], "y": x[:, 1], "tree": np.array(LABELS, object)[label]}


@pytest.fixture(scope="module")
def trees() -> TabularModel:
    columns = plane(2000, 0)
    profiles = [ColumnProfile(name=name, type="number") for name in "xy"]
    profiles.append(ColumnProfile(name="tree", type="category", levels=LABELS))
    wanted = ModelConfig(
        target="tree",
        network=MLPConfig(hidden=(16,)),
        training=TrainingConfig(epochs=8, fine_tune_epochs=1, validation_fraction=0.5),
        pruning=(0.5, 0.75),
        out_of_distribution=OutOfDistributionConfig(false_alarm_rate=RATE),
    )
    types = {profile.name: profile.type for profile in profiles}
    return train(columns, types, resolve(wanted, profiles, 2000))


@pytest.mark.parametrize(("rows", "rate"), [(99, 0.01), (20, 0.5)])
def test_the_bound_is_exceeded_as_often_as_asked(rows: int, rate: float) -> None:
    """Of uniform scores the share above the k-th smallest is 1 − U_(k), whose mean is known."""
    random = np.random.default_rng(0)
    bounds = [Detector.fit(SURPRISE, random.random(rows), rate).threshold for _ in range(4000)]
    alarms = 1 - np.array(bounds)
    assert alarms.mean() <= rate + 4 * alarms.std() / np.sqrt(4000)
    assert alarms.mean() == pytest.approx(rate, abs=1 / (rows + 1))


def test_variants_flag_usual_rows_as_rarely_as_asked(trees: TabularModel) -> None:
    """1,000 held-out rows make the bound, 4,000 fresh ones test it: beta-binomial, 1 in 10⁴."""
    fresh, detectors = plane(4000, 7), [trees.detector(prune) for prune in trees.variants]
    for prune in trees.variants:
        flagged = int(trees.predict(fresh, PredictOptions(prune=prune)).out_of_distribution.sum())
        slack = 4 * np.sqrt(RATE * (1 - RATE) / 1000)  # what the bound itself may be off
        low, high = (
            binom.ppf(p, 4000, q) for p, q in ((1e-4, RATE - slack), (1 - 1e-4, RATE + slack))
        )
        assert low <= flagged <= high
    assert {detector.score for detector in detectors} == {SURPRISE}
    assert {detector.false_alarm_rate for detector in detectors} == {RATE}
