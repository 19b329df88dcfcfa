"""Summaries of held-out rows beside scikit-learn, scipy and the rows themselves."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import precision_score, recall_score, roc_curve

from models.evaluation.calibration import LabelledMixture
from models.prediction.predictive import CategoricalMixture, GaussianMixture
from models.tabular.held_out import (
    MOST_CLASSES,
    MOST_NUMBERS,
    MOST_POINTS,
    describe_classes,
    describe_numbers,
)

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
    mixture = GaussianMixture(mean, torch.full((1, 3), 4.0).double())
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


def test_many_rows_keep_few_points_with_both_ends() -> None:
    labelled = classes(2_000)
    for curve in describe_classes([labelled], None, CLASSES)["curves"]:
        assert len(curve["threshold"]) == MOST_POINTS
        assert (curve["recall"][-1], curve["false_positive_rate"][-1]) == (1.0, 1.0)
        own = labelled.mixture.mean()[:, CLASSES.index(curve["label"])]
        assert curve["threshold"][0] == pytest.approx(float(own.max()), rel=1e-5)
    assert MOST_NUMBERS <= 300


def test_a_row_of_weight_two_counts_twice() -> None:
    once = classes(40)
    assert isinstance(once.mixture, CategoricalMixture)
    probs, targets = once.mixture.logits, once.targets
    twice = LabelledMixture(
        CategoricalMixture(torch.cat([probs, probs], 1)), torch.cat([targets, targets]), None
    )
    weighted = classes(40, torch.full((40,), 2.0).double())
    first, second = (describe_classes([one], None, CLASSES)["curves"] for one in (twice, weighted))
    for a, b in zip(first, second, strict=True):
        assert {name: b[name] for name in ("label", "share")} == {
            n: a[n] for n in ("label", "share")
        }
        for name in ("recall", "precision", "false_positive_rate"):
            np.testing.assert_allclose(a[name], b[name], rtol=1e-5, atol=1e-9)


def test_a_class_without_rows_has_no_curve() -> None:
    targets = torch.tensor([0, 2, 2, 0])
    labelled = LabelledMixture(CategoricalMixture(torch.randn(1, 4, 3).double()), targets, None)
    found = describe_classes([labelled], None, CLASSES)["curves"]
    assert [curve["label"] for curve in found] == ["alder", "oak"]
    assert len(found) <= MOST_CLASSES
