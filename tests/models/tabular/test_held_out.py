"""Summaries of held-out rows beside scikit-learn, scipy and the rows themselves."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import precision_score, recall_score, roc_curve

from models.evaluation.calibration import LabelledMixture
from models.likelihoods.mixture import CategoricalMixture
from models.likelihoods.number_mixture import NumberMixture
from models.tabular.measurement import (
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
