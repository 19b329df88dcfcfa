"""Rows to label, to abstain on and to flag, and adaptive levels."""

import numpy as np
import pytest
import torch
from scipy.stats import binom

from models.config import MLPConfig, ModelConfig, OutOfDistributionConfig, TrainingConfig
from models.evaluation import acquisition
from models.evaluation.abstention import POINTS, risk_coverage
from models.evaluation.adaptive import Labels, covered, follow, track
from models.evaluation.calibration import NumberCalibration
from models.evaluation.conformal_rank import Reference
from models.evaluation.detector import SURPRISE, Detector
from models.features.columns import ColumnProfile
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

NUM_DRAWS = 4000


def _linear(num_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows x, weight draws w ~ N(0, 1)², predicted means x·w."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_rows, 2)) * [1.0, 3.0]
    w = rng.normal(size=(NUM_DRAWS, 2))
    return x, w, w @ x.T


def test_the_information_of_a_linear_models_labels_is_the_closed_form() -> None:
    """I(y_B; w) = ½ log det(1 + X Xᵀ ÷ σ²); covariances of 4,000 draws err by a few percent."""
    x, _, draws = _linear(12)
    noise = 0.5
    z = acquisition.of_numbers(draws, np.full(12, noise))
    alone = 0.5 * np.log1p((x**2).sum(1) / noise)
    np.testing.assert_allclose(acquisition.information(z).numpy(), alone, rtol=0.03)
    chosen = acquisition.choose(z, 5)
    some = x[chosen.rows]
    together = 0.5 * np.linalg.slogdet(np.eye(5) + some @ some.T / noise)[1]
    np.testing.assert_allclose(sum(chosen.gains), together, rtol=0.03)


def test_a_row_that_is_there_twice_is_chosen_once() -> None:
    """Alone both copies tell most; once one is known, the other tells less than a new row."""
    draws = np.random.default_rng(0).normal(size=(500, 2)) @ np.array(
        [[3.0, 3.0, 0.0], [0, 0, 2.0]]
    )
    z = acquisition.of_numbers(draws, np.ones(3))
    assert set(acquisition.choose_alone(acquisition.information(z).numpy(), 2).rows) == {0, 1}
    assert acquisition.choose(z, 2).rows == [0, 2]


def test_a_known_order() -> None:
    """40 rows, wrong are the 10 most uncertain: no risk up to 75 %, then (k − 30)/k."""
    uncertainty = torch.arange(40.0).flip(0)
    loss = (uncertainty >= 30).double()
    found = risk_coverage(uncertainty, loss, np.array, torch.ones(len(loss)).double())
    curve = found["risk_coverage"]
    assert [point["coverage"] for point in curve] == pytest.approx(
        np.arange(1, POINTS + 1) / POINTS
    )
    assert [point["threshold"] for point in curve] == list(range(1, 40, 2))
    expected = [max(0, k - 30) / k for k in range(2, 41, 2)]
    assert [point["risk"] for point in curve] == pytest.approx(expected)
    assert found["aurc"] == pytest.approx(np.mean([max(0, k - 30) / k for k in range(1, 41)]))


def test_rows_above_the_bound_are_marked_and_stay() -> None:
    total = np.array([4.0, 9.0, np.inf, np.nan])
    answer = RowPrediction(
        task="regression",
        samples=1,
        seed=0,
        sampler="sobol",
        prune=0.0,
        values={"mean": np.arange(4.0), "total_variance": total},
    )
    marked = answer.abstaining(2.0)
    assert marked["abstained"].tolist() == [False, True, True, True]
    assert marked.mean.tolist() == [0, 1, 2, 3]
    part = marked.select(1, 3, PredictOptions(intervals=()))["abstained"]
    assert part.tolist() == [True, True]
    assert marked.abstaining(None).get("abstained") is None


LEVEL, LABELS, HALF = 0.9, 1000, 500
WINDOW = 200


def gaussian(rows: int, seed: int, scale: float | np.ndarray = 1.0) -> np.ndarray:
    """|y − mean| ÷ deviation where the deviation is `scale` times the predicted one."""
    return np.asarray(np.abs(scale * np.random.default_rng(seed).standard_normal(rows)))


@pytest.mark.parametrize("hostile", [False, True])
def test_misses_are_within_the_bound_of_the_paper(hostile: bool) -> None:
    """Proposition 4.1 of Gibbs and Candès holds for any sequence, so also for a hostile one."""
    needed = np.random.default_rng(0).random(400) ** 0.1
    if hostile:  # in turn, none is covered and all are
        needed = np.where(np.arange(400) // 100 % 2, 1.0, 0.0)
    for step, level in ((0.005, 0.9), (0.05, 0.5), (0.5, 0.99)):
        levels = track(needed, [level], [step])[:-1, 0]
        misses = (levels <= needed).mean()
        bound = (max(level, 1 - level) + step) / (step * 400)
        assert abs(misses - (1 - level)) <= bound


def test_coverage_is_restored_when_the_noise_doubles() -> None:
    """In every window of 200 rows within 8 points, after the change within 2 on average.

    The share in a window of independent rows would have the standard error 0.021.
    """
    calibration = Reference(np.sort(gaussian(200, 1)), np.ones(200))
    plain = NumberCalibration(1.0, tuple(calibration.scores), 200)
    local, after, of_conformal = [], [], []
    for seed in range(5):
        scores = gaussian(LABELS, 10 + seed, np.where(np.arange(LABELS) < HALF, 1.0, 2.0))
        labels = Labels.newest(scores.tolist(), range(LABELS))  # each before the next prediction
        inside = covered(calibration, labels, follow(calibration, labels, [LEVEL]))[:, 0]
        assert abs(inside.mean() - LEVEL) < 0.03
        local.append(np.convolve(inside, np.ones(WINDOW) / WINDOW, "valid"))
        after.append(inside[HALF + WINDOW // 2 :].mean())
        of_conformal.append((scores <= plain.score(LEVEL))[HALF:].mean())
    assert np.abs(np.mean(local, 0) - LEVEL).max() < 0.08
    assert np.mean(after) == pytest.approx(LEVEL, abs=0.02)
    assert np.mean(of_conformal) < 0.65


CLASSES = ("alder", "beech", "oak")
RATE = 0.05


def plane(rows: int, seed: int) -> dict[str, np.ndarray]:
    """Three classes whose clouds touch."""
    random = np.random.default_rng(seed)
    label = random.integers(0, 3, rows)
    x = np.stack([random.normal(label, 0.5), random.normal(-label, 0.5)], axis=1)
    return {"x": x[:, 0], "y": x[:, 1], "tree": np.array(CLASSES, object)[label]}


@pytest.fixture(scope="module")
def trees() -> TabularModel:
    columns = plane(2000, 0)
    profiles = [ColumnProfile(name=name, type="number") for name in "xy"]
    profiles.append(ColumnProfile(name="tree", type="category", levels=CLASSES))
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
