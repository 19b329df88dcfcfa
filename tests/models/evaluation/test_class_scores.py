"""Scores by class, compared with scikit-learn, with repeated rows and with simulations."""

import numpy as np
import pytest
import torch
from sklearn import metrics as sk

from models.evaluation.class_scores import (
    auroc,
    auroc_error,
    auroc_of,
    class_metrics,
    class_row_scores,
)
from models.evaluation.weighting import WEIGHT

NAMES = ("a", "b", "c")
ONES = torch.ones(120).double()


def _rows(num_classes: int, rows: int = 300, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities, rounded so that there are ties, and classes drawn from them."""
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.linspace(3, 0.3, num_classes), rows)
    targets = np.array([random.choice(num_classes, p=p) for p in shares])
    rounded = np.round(shares, 2)
    rounded /= rounded.sum(1, keepdims=True)
    return torch.from_numpy(rounded), torch.from_numpy(targets)


def test_three_classes_have_the_scores_of_scikit_learn() -> None:
    """Of rows with weights."""
    p, t = _rows(3)
    own = np.random.default_rng(1).integers(1, 4, len(t)).astype(float)
    metrics, errors = class_metrics(class_row_scores(p, t) | {WEIGHT: torch.from_numpy(own)}, NAMES)
    truth, label, p = t.numpy(), p.argmax(1).numpy(), p.numpy()
    together = {
        "balanced_accuracy": sk.balanced_accuracy_score(truth, label, sample_weight=own),
        "average_precision": sk.average_precision_score(np.eye(3)[truth], p, sample_weight=own),
        "auroc": sk.roc_auc_score(truth, p, multi_class="ovr", sample_weight=own),
    }
    assert {name: metrics[name] for name in together} == pytest.approx(together)
    confusion = sk.confusion_matrix(truth, label, sample_weight=own)
    assert np.array(metrics["confusion"]["counts"]) == pytest.approx(confusion)
    recalls = sk.recall_score(truth, label, average=None, sample_weight=own)
    precisions = sk.precision_score(truth, label, average=None, sample_weight=own)
    for k, one in enumerate(metrics["by_class"]):
        assert (one["class"], one["rows"]) == (NAMES[k], int((truth == k).sum()))
        expected = {
            "recall": recalls[k],
            "precision": precisions[k],
            "average_precision": sk.average_precision_score(truth == k, p[:, k], sample_weight=own),
            "auroc": sk.roc_auc_score(truth == k, p[:, k], sample_weight=own),
        }
        assert {name: one[name] for name in expected} == pytest.approx(expected)
    assert set(errors) == {"balanced_accuracy"}


def test_two_classes_have_the_scores_of_the_rarer_one() -> None:
    p, t = _rows(2)
    assert (t == 1).sum() < (t == 0).sum()
    metrics, errors = class_metrics(class_row_scores(p, t), (False, True))
    truth, score = t.numpy() == 1, p[:, 1].numpy()
    assert metrics["positive"] is True
    assert metrics["average_precision"] == pytest.approx(sk.average_precision_score(truth, score))
    assert metrics["auroc"] == pytest.approx(sk.roc_auc_score(truth, score))
    flipped, _ = class_metrics(class_row_scores(p.flip(1), 1 - t), ("x", "y"))
    assert flipped["positive"] == "x"
    assert flipped["average_precision"] == pytest.approx(metrics["average_precision"])
    assert errors["auroc"] > 0


def test_the_error_of_the_auroc_is_its_spread() -> None:
    """Over 300 tables: the mean error and the standard deviation agree within 15 %.

    The deviation of 300 values has an error of 4 %, their mean error one of about 1 %.
    """
    random = np.random.default_rng(0)
    found, errors = [], []
    for _ in range(300):
        positive = torch.from_numpy(random.random(120) < 0.25)
        scores = torch.from_numpy(random.normal(size=120)) + positive
        found.append(auroc_of(scores, positive, ONES))
        errors.append(auroc_error(scores, positive, ONES))
    spread = float(np.std([f for f in found if f is not None]))
    assert np.mean([e for e in errors if e is not None]) == pytest.approx(spread, rel=0.15)


@pytest.mark.parametrize(("usual", "strange", "distinct"), [(2000, 300, 10**9), (50, 80, 5)])
def test_the_auroc_of_usual_and_strange_rows_is_scikit_learns(
    usual: int, strange: int, distinct: int
) -> None:
    """With few distinct values most pairs are equal, and count half."""
    random = np.random.default_rng(usual + distinct)
    a = random.integers(0, distinct, usual).astype(float)
    b = random.integers(0, distinct, strange) * 1.2
    expected = sk.roc_auc_score([0] * usual + [1] * strange, np.concatenate([a, b]))
    assert auroc(torch.from_numpy(a), torch.from_numpy(b)) == pytest.approx(expected, abs=1e-12)
