"""A row of weight w is as good as w rows, and one of weight 0 as good as none."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from models.evaluation.abstention import selective_metrics
from models.evaluation.calibration import (
    Calibration,
    LabelledMixture,
    NumberCalibration,
    fit_calibration,
)
from models.evaluation.conformal_rank import order_statistics
from models.evaluation.metrics import PerRowScores, auroc, row_scores, summarise
from models.evaluation.out_of_distribution import Detector
from models.evaluation.paired import paired
from models.evaluation.ranking import recommend_variant
from models.prediction.predictive import CategoricalMixture, GaussianMixture, Mixture

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
    return GaussianMixture(means, torch.full_like(means, 0.5)), NUMBERS[rows]


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


def _flat(value: object) -> object:
    """Numbers as floats, without the counts of rows that weights do not change."""
    if isinstance(value, dict):
        return {k: _flat(v) for k, v in value.items() if k not in ("rows", "weight")}
    if isinstance(value, list):
        return [_flat(one) for one in value]
    return None if value is None else pytest.approx(float(value), rel=1e-5, abs=1e-9)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [_numbers, _classes])
def test_calibration_and_all_metrics_are_those_of_repeated_rows(make: Make) -> None:
    weighted, repeated = _both(make)
    scale, same = _calibrate(weighted), _calibrate(repeated)
    scores = row_scores(weighted, scale)
    others = row_scores(repeated, same)
    found = summarise(scores) | selective_metrics(scores)
    assert found == _flat_but_rows(found, summarise(others) | selective_metrics(others))
    assert found["weight"] == float(WEIGHTS.sum()) == len(repeated.targets)
    assert found["rows"] == int((WEIGHTS > 0).sum())


def _flat_but_rows(found: dict, wanted: dict) -> dict:
    """The wanted metrics, with the counts of the found ones; lists are as long."""
    return _with_counts(found, _flat(wanted))  # type: ignore[return-value]


def _with_counts(found: object, wanted: object) -> object:
    if isinstance(found, dict) and isinstance(wanted, dict):
        counts = {k: v for k, v in found.items() if k in ("rows", "weight")}
        return counts | {k: _with_counts(found.get(k), v) for k, v in wanted.items()}
    if isinstance(found, list) and isinstance(wanted, list):
        assert len(found) == len(wanted)
        return [_with_counts(*pair) for pair in zip(found, wanted, strict=True)]
    return wanted


def test_metrics_ignore_rows_of_weight_0() -> None:
    """Also where their scores are not finite: 0 · ∞ would be NaN."""
    weighted, _ = _both(_numbers)
    scores: PerRowScores = row_scores(weighted, None)
    counts = WEIGHTS > 0
    worse = {name: torch.where(counts, v, math.inf) for name, v in scores.items()}
    worse["weight"] = scores["weight"]
    kept = {name: values[counts] for name, values in scores.items()}
    assert summarise(worse) == summarise(kept)
    assert selective_metrics(worse) == selective_metrics(kept)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.8, 0.9, 0.95, 0.995])
def test_conformal_quantiles_are_those_of_repeated_rows(level: float) -> None:
    weighted, repeated = _both(_numbers)
    found, wanted = _calibrate(weighted), _calibrate(repeated)
    assert isinstance(found, NumberCalibration)
    assert isinstance(wanted, NumberCalibration)
    assert found.half_width(level) == pytest.approx(wanted.half_width(level), rel=1e-6)


def test_a_conformal_quantile_by_hand() -> None:
    """Σ w + 1 = 5: the weights up to a residual reach 4 of 5 at the last, 2 of 5 at the second."""
    calibration = NumberCalibration(1.0, (1.0, 2.0, 3.0), 3, (0.5, 1.5, 2.0))
    assert [calibration.half_width(level) for level in (0.1, 0.4, 0.41, 0.8)] == [1, 2, 3, 3]
    assert calibration.half_width(0.81) == math.inf


def test_many_weighted_residuals_are_thinned_upwards() -> None:
    """A quantile of the kept ones is never below that of all, and those of rows are the same."""
    values = torch.from_numpy(RANDOM.exponential(size=200))
    weights = torch.from_numpy(RANDOM.integers(1, 4, 200).astype(float))
    assert order_statistics(values, weights, 19) == order_statistics(
        values.repeat_interleave(weights.long()), most=19
    )
    small = weights * 0.03  # they count as fewer rows than are kept
    kept, each = order_statistics(values, small, 19)
    order = values.argsort()
    whole = (tuple(values[order].tolist()), tuple(small[order].tolist()))
    assert sum(each) == pytest.approx(float(small.sum()))
    for level in np.linspace(0.01, 0.99, 99):
        thin = NumberCalibration(1.0, kept, 200, each).half_width(level)
        assert thin >= NumberCalibration(1.0, whole[0], 200, whole[1]).half_width(level)


@pytest.mark.parametrize("rate", [0.3, 0.05, 0.001])
def test_a_detector_is_that_of_repeated_rows(rate: float) -> None:
    scores = NUMBERS.numpy()
    weighted = Detector.fit("total_variance", scores, rate, WEIGHTS.numpy())
    repeated = Detector.fit("total_variance", np.repeat(scores, TIMES.numpy()), rate)
    assert replace(weighted, rows=len(scores)) == replace(repeated, rows=len(scores))
    assert weighted.rows == int((WEIGHTS > 0).sum())  # rows that say the same tell no more


def test_paired_differences_are_those_of_repeated_rows() -> None:
    repeat = torch.arange(ROWS).repeat_interleave(TIMES)
    found, wanted = paired(MEAN, NUMBERS, WEIGHTS), paired(MEAN[repeat], NUMBERS[repeat])
    assert found.difference == pytest.approx(wanted.difference, rel=1e-9)
    assert found.standard_error == pytest.approx(wanted.standard_error, rel=1e-9)
    best, pair = recommend_variant({0.0: MEAN, 0.5: MEAN + 1 + 0.1 * NUMBERS}, WEIGHTS)
    assert best == 0.5
    assert pair is not None
    assert math.isnan(paired(MEAN[:1], NUMBERS[:1], torch.ones(1)).standard_error)


def test_auroc_is_that_of_repeated_rows() -> None:
    unlike = torch.cat([NUMBERS + 0.5, MEAN[:9]])  # with ties
    found = auroc(MEAN, unlike, WEIGHTS)
    assert found == pytest.approx(auroc(MEAN.repeat_interleave(TIMES), unlike), rel=1e-12)
