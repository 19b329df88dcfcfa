"""The area under the ROC curve, beside scikit-learn's."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from models.evaluation.metrics import auroc


@pytest.mark.parametrize(("usual", "strange"), [(50, 80), (1, 1), (2000, 300)])
@pytest.mark.parametrize("distinct", [10**9, 5])
def test_it_is_scikit_learns(usual: int, strange: int, distinct: int) -> None:
    """With few distinct values most pairs are equal, and count half."""
    random = np.random.default_rng(usual + distinct)
    a = random.integers(0, distinct, usual).astype(float)
    b = random.integers(0, distinct, strange) * 1.2
    expected = roc_auc_score([0] * usual + [1] * strange, np.concatenate([a, b]))
    assert auroc(torch.from_numpy(a), torch.from_numpy(b)) == pytest.approx(expected, abs=1e-12)


def test_scores_that_tell_nothing_give_a_half() -> None:
    assert auroc(torch.zeros(7), torch.zeros(3)) == 0.5


def test_scores_that_tell_all_give_one() -> None:
    assert auroc(torch.zeros(7), torch.ones(3)) == 1.0
