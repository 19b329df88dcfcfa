"""A row of weight w is as good as w rows, and one of weight 0 as good as none."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from models.evaluation.abstention import selective_metrics
from models.evaluation.calibration import (
    Calibration,
    LabelledMixture,
    fit_calibration,
)
from models.evaluation.metrics import row_scores, summarise
from models.likelihoods.mixture import CategoricalMixture, Mixture
from models.likelihoods.number_mixture import NumberMixture
from tests.models.nested import assert_close

ROWS = 47
RANDOM = np.random.default_rng(3)
WEIGHTS = torch.from_numpy(RANDOM.integers(0, 5, ROWS).astype(np.float32))
TIMES = WEIGHTS.long()
MEAN = torch.from_numpy(RANDOM.normal(size=ROWS))
NUMBERS = MEAN + torch.from_numpy(RANDOM.normal(size=ROWS))
LOGITS = torch.from_numpy(RANDOM.normal(size=(2, ROWS, 3)))
CLASSES = torch.from_numpy(RANDOM.integers(0, 3, ROWS))


def _numbers(rows: Tensor) -> tuple[Mixture, Tensor]:
    means = torch.stack([MEAN[rows], MEAN[rows] + 0.1])
    return NumberMixture.gaussian(means, torch.full_like(means, 0.5)), NUMBERS[rows]


def _classes(rows: Tensor) -> tuple[Mixture, Tensor]:
    return CategoricalMixture(LOGITS[:, rows]), CLASSES[rows]


Make = Callable[[Tensor], tuple[Mixture, Tensor]]


def _both(make: Make) -> tuple[LabelledMixture, LabelledMixture]:
    """Rows with weights, and the same rows repeated."""
    every = torch.arange(ROWS)
    return LabelledMixture(*make(every), WEIGHTS), LabelledMixture(
        *make(every.repeat_interleave(TIMES)), None
    )


def _calibrate(one: LabelledMixture) -> Calibration:
    return fit_calibration([one], [one])


@pytest.mark.parametrize("make", [_numbers, _classes])
def test_calibration_and_all_metrics_are_those_of_repeated_rows(make: Make) -> None:
    weighted, repeated = _both(make)
    scores = row_scores(weighted, _calibrate(weighted))
    others = row_scores(repeated, _calibrate(repeated))
    found = summarise(scores) | selective_metrics(scores)
    assert found["weight"] == float(WEIGHTS.sum()) == len(repeated.targets)
    assert found["rows"] == int((WEIGHTS > 0).sum())
    wanted = summarise(others) | selective_metrics(others)
    assert_close(found, wanted, ignored=("rows", "weight"))


def test_conformal_quantiles_are_those_of_repeated_rows() -> None:
    found, wanted = map(_calibrate, _both(_numbers))
    for level in (0.05, 0.5, 0.9, 0.995):
        assert found.score(level) == pytest.approx(wanted.score(level), rel=1e-6)
