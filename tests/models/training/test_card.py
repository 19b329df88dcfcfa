"""What a training writes: its card, and checkpoints at moments that cost little."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.calibration import calibration_curve
from sklearn.metrics import precision_score, recall_score, roc_curve

from models.card import summarise_columns
from models.config import FeatureConfig, MLPConfig, TrainingConfig
from models.evaluation.calibration import LabelledMixture
from models.evaluation.reliability import MAX_BINS, PIT_BINS, pit_histogram, reliability_bins
from models.features.columns import Columns
from models.features.feature_encoder import FeatureEncoder
from models.likelihoods.mixture import CategoricalMixture
from models.likelihoods.number_mixture import NumberMixture
from models.tabular.measurement import (
    describe_classes,
    describe_numbers,
)
from models.tabular.model import TabularModel
from models.training.checkpoints import CheckpointSpacing, interval
from tests.models.training.fitting import trained


def test_bins_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    confidence = random.uniform(0.2, 1.0, 1500)
    correct = (random.random(1500) < confidence**2).astype(float)
    bins = reliability_bins(torch.from_numpy(confidence), torch.from_numpy(correct))
    accuracy, mean = calibration_curve(correct, confidence, n_bins=MAX_BINS, strategy="quantile")
    assert [b["rows"] for b in bins] == [100] * MAX_BINS
    assert [b["accuracy"] for b in bins] == pytest.approx(accuracy.tolist())
    assert [b["confidence"] for b in bins] == pytest.approx(mean.tolist())


def test_the_histogram_of_right_distributions_is_flat() -> None:
    """The p-value of a chi-square test is below 1e-4 once in 10,000 seeds."""
    y = np.random.default_rng(1).normal(3.0, 2.0, 4000)
    counts = pit_histogram(torch.from_numpy(stats.norm(3.0, 2.0).cdf(y)))
    assert counts == np.histogram(stats.norm(3.0, 2.0).cdf(y), PIT_BINS, (0, 1))[0].tolist()
    assert stats.chisquare(counts).pvalue > 1e-4
    narrow = pit_histogram(torch.from_numpy(stats.norm(3.0, 1.0).cdf(y)))
    assert stats.chisquare(narrow).pvalue < 1e-9


def table() -> tuple[Columns, dict[str, str]]:
    """Every type of column, with gaps."""
    random = np.random.default_rng(2)
    size = random.normal(size=200)
    size[::20] = np.nan
    kind = np.array(random.choice(["ash", "oak", "elm"], 200), dtype=object)
    kind[3] = None
    columns: Columns = {
        "size": size,
        "kind": kind,
        "wet": (random.random(200) < 0.3).astype(float),
        "day": np.datetime64("2026-01-01", "us") + np.arange(200) * np.timedelta64(1, "D"),
        "image": random.normal(size=(200, 2, 3)).astype(np.float32),
        "y": random.normal(5, 2, 200),
    }
    types = dict(
        zip(columns, ("number", "category", "boolean", "datetime", "tensor", "number"), strict=True)
    )
    return columns, types


def test_columns_are_summarised_as_numpy_does() -> None:
    columns, types = table()
    names = [name for name in columns if name != "y"]
    features = [FeatureConfig(name=n, type=types[n]) for n in names]  # type: ignore[arg-type]
    encoder = FeatureEncoder.fit(features, types, columns)
    found = {c.name: c for c in summarise_columns(columns, encoder, "y", "number")}
    size, image = columns["size"], columns["image"].astype(np.float64)
    assert [c.role for c in found.values()] == ["feature"] * 5 + ["target"]
    for column, values in (("size", size), ("image", image), ("y", columns["y"])):
        summary = found[column]
        numbers = [summary.min, summary.max, summary.mean, summary.std]
        wanted = [f(values) for f in (np.nanmin, np.nanmax, np.nanmean, np.nanstd)]
        assert numbers == pytest.approx(wanted)
    assert (found["size"].missing, found["kind"].missing, found["y"].missing) == (10, 1, 0)
    assert found["image"].shape == (2, 3)
    assert found["kind"].levels is not None
    assert dict(found["kind"].levels) == {
        level: int((columns["kind"] == level).sum()) for level in ("ash", "elm", "oak")
    }
    wet = int(columns["wet"].sum())
    assert found["wet"].levels == (("false", 200 - wet), ("true", wet))
    assert (found["day"].min, found["day"].max) == ("2026-01-01T00:00:00Z", "2026-07-19T00:00:00Z")


def small_model(*, stopping: float = 0.0, refit: bool = False) -> TabularModel:
    training = TrainingConfig(epochs=3, fine_tune_epochs=1, stopping_fraction=stopping, refit=refit)
    return trained(*table(), network=MLPConfig(hidden=(4,)), training=training, pruning=(0.5,))


def counts(model: TabularModel) -> tuple[int, ...]:
    rows = model.card["rows"]
    return tuple(rows[use] for use in ("learned", "stopping", "calibration", "held_out"))


def test_every_row_is_accounted_for_once() -> None:
    """Refitted weights have learned from the rows that chose the epoch."""
    assert counts(small_model(stopping=0.1)) == (141, 20, 19, 20)
    assert counts(small_model(stopping=0.1, refit=True)) == (161, 0, 19, 20)


DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def train(
    cost: float, seconds: float, longest: float = DAY, batch_seconds: float = 0.01
) -> list[tuple[float, float]]:
    """Begin and end of each checkpoint of a training."""
    clock = Clock()
    spacing, found = CheckpointSpacing(longest, clock), []
    begun = clock.now
    while clock.now - begun < seconds:
        clock.now += batch_seconds
        if spacing.is_due():
            start = clock.now - begun
            with spacing.measured():
                clock.now += cost
            found.append((start, clock.now - begun))
    return found


@pytest.mark.parametrize("cost", [0.0, 0.001, 0.2, 0.7])
def test_the_first_checkpoint_comes_after_five_seconds(cost: float) -> None:
    assert train(cost, 60)[0][0] == pytest.approx(5.0, abs=0.02)


@pytest.mark.parametrize("cost", [0.0, 0.01, 0.1, 0.5, 0.7])
def test_a_process_killed_at_any_moment_repeats_ten_seconds_or_five_percent(cost: float) -> None:
    """The work since the last checkpoint that is complete, at its worst: before the next one is."""
    found = train(cost, 2000)
    for (begun, _), (_, complete) in pairwise(found):
        assert complete - begun <= max(10.0, 0.05 * complete)


def test_in_a_long_training_checkpoints_take_one_percent_of_the_time() -> None:
    for cost in (0.05, 0.5, 2.0):
        found = train(cost, 5 * 3600, batch_seconds=1.0)
        hour = [begun for begun, _ in found if begun > 4 * 3600]
        share = cost * len(hour) / 3600
        assert share <= 0.0105, cost
    begins = [begun for begun, _ in train(0.5, 3600, batch_seconds=0.2)]
    assert np.diff(begins)[-1] == pytest.approx(50.5, abs=0.4)  # two mini-batches


def test_the_setting_is_the_longest_time_whatever_the_rest_says() -> None:
    assert interval(0.0, 0.0, 0.3) == 0.3
    assert interval(100.0, DAY, 300.0) == 300.0
    assert len(train(0.01, 10, longest=0.5)) == pytest.approx(10 / 0.52, abs=1)


CLASSES = ("alder", "beech", "oak")


def classes(rows: int, weights: torch.Tensor | None = None) -> LabelledMixture:
    """Three classes of which the logits know something, in random order."""
    random = torch.Generator().manual_seed(0)
    targets = torch.randint(0, 3, (rows,), generator=random)
    known = torch.nn.functional.one_hot(targets, 3).double()
    logits = known + torch.randn(rows, 3, generator=random).double()
    return LabelledMixture(CategoricalMixture(logits.unsqueeze(0)), targets, weights)


def test_numbers_have_the_quantiles_of_their_distribution() -> None:
    mean = torch.tensor([[0.0, 10.0, -3.0]]).double()
    mixture = NumberMixture.gaussian(mean, torch.full((1, 3), 4.0).double())
    found = describe_numbers([LabelledMixture(mixture, torch.tensor([1.0, 2.0, 3.0]), None)], None)
    assert found["actual"] == [1.0, 2.0, 3.0]
    assert found["mean"] == [0.0, 10.0, -3.0]
    ends = [stats.norm(m, 2.0).ppf([0.05, 0.95]) for m in (0.0, 10.0, -3.0)]
    assert found["lower"] == pytest.approx([low for low, _ in ends], abs=1e-3)
    assert found["upper"] == pytest.approx([high for _, high in ends], abs=1e-3)


def test_curves_are_those_of_scikit_learn() -> None:
    labelled = classes(80)
    found = describe_classes([labelled], None, CLASSES)
    assert found["rows"] == 80
    probabilities = labelled.mixture.mean().numpy()
    for curve in found["curves"]:
        k = CLASSES.index(curve["label"])
        truth, scores = (labelled.targets == k).numpy(), probabilities[:, k]
        assert curve["share"] == pytest.approx(truth.mean())
        rates, recalls, at = roc_curve(truth, scores, drop_intermediate=False)
        np.testing.assert_allclose(curve["threshold"], at[1:], rtol=1e-4)
        np.testing.assert_allclose(curve["false_positive_rate"], rates[1:], atol=1e-5)
        np.testing.assert_allclose(curve["recall"], recalls[1:], rtol=1e-5)
        taken = scores >= curve["threshold"][30] * (1 - 1e-5)
        assert curve["precision"][30] == pytest.approx(precision_score(truth, taken), rel=1e-4)
        assert curve["recall"][30] == pytest.approx(recall_score(truth, taken), rel=1e-4)
