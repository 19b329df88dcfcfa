"""Sets of classes: their definition, coverage and size by simulation, and who chooses λ and k."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from models.evaluation.class_sets import (
    Penalty,
    RankedClasses,
    SetCalibration,
    choose_penalty,
    fit_sets,
)

LEVELS = (0.5, 0.8, 0.9, 0.95)


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _probabilities(rows: int, classes: int, seed: int, sharpness: float = 2.0) -> Tensor:
    logits = torch.randn(rows, classes, generator=_seeded(seed), dtype=torch.float64)
    return (sharpness * logits).softmax(-1)


def _labels(probabilities: Tensor, seed: int) -> Tensor:
    return torch.multinomial(probabilities, 1, generator=_seeded(seed)).squeeze(1)


def _covered(sets: SetCalibration, probabilities: Tensor, targets: Tensor, level: float) -> Tensor:
    ranked = RankedClasses.of(probabilities)
    return ranked.ranks(targets) <= sets.sizes(ranked, level)


def test_a_credible_set_is_the_smallest_that_reaches_the_level() -> None:
    probabilities = _probabilities(50, 5, 0)
    ranked = RankedClasses.of(probabilities)
    for level in LEVELS:
        for row, size in zip(probabilities, ranked.credible_sizes(level).tolist(), strict=True):
            sums = row.sort(descending=True).values.cumsum(0)
            assert sums[size - 1] >= level
            assert size == 1 or sums[size - 2] < level


def test_conformal_sets_cover_the_level_whatever_the_probabilities() -> None:
    """⌈(n + 1) · level⌉ ÷ (n + 1) on average over calibrations; within three standard errors."""
    pairs, rows, new, level = 100, 99, 200, 0.9
    true = _probabilities(pairs * (rows + new), 6, 1, sharpness=1.0)
    targets = _labels(true, 2).view(pairs, -1)
    told = true.pow(3.0)
    told = (told / told.sum(-1, keepdim=True)).view(pairs, rows + new, 6)
    covered = []
    for p, y in zip(told, targets, strict=True):
        sets = fit_sets(p[:rows], y[:rows], torch.ones(rows).double())
        covered.append(float(_covered(sets, p[rows:], y[rows:], level).double().mean()))
    ranked = 79  # of the 99 rows, as 20 choose the penalty
    exact = math.ceil((ranked + 1) * level - 1e-9) / (ranked + 1)
    error = float(np.std(covered)) / math.sqrt(pairs)
    assert np.mean(covered) == pytest.approx(exact, abs=3 * error)


def test_a_tail_that_says_nothing_is_penalised() -> None:
    """Half of the rows are sure of one class, but told a half for 30 others (the papers' case).

    The other half's sets of 90 % need four classes, with 0.75 before the fourth. Without a penalty
    the sure rows' sets have all that comes before 0.75, too: about half of the tail.
    """
    random, rows = _seeded(8), 2_000
    tail = 0.5 * torch.rand(rows, 30, generator=random, dtype=torch.float64).softmax(-1)
    sure = torch.cat([torch.full((rows, 1), 0.5), tail], -1)
    plain = torch.tensor([0.3, 0.25, 0.2, 0.15, 0.1]).double() + 1e-3 * tail[:, :5]
    plain = torch.nn.functional.pad(plain / plain.sum(-1, keepdim=True), (0, 26))
    is_sure = torch.arange(rows) // 2 % 2 == 0
    told = torch.where(is_sure.unsqueeze(-1), sure, plain)
    targets, ones = torch.where(is_sure, 0, _labels(plain, 9)), torch.ones(1_000).double()
    penalty = choose_penalty(told[:1_000], targets[:1_000], ones)
    assert penalty.weight > 0
    told, targets = told[1_000:], targets[1_000:]
    ranked = RankedClasses.of(told)
    without = Penalty().calibrated(ranked, targets, ones).sizes(ranked, 0.9).double().mean()
    regular = penalty.calibrated(ranked, targets, ones)
    assert regular.sizes(ranked, 0.9).double().mean() < 0.6 * without
    share = _covered(regular, told, targets, 0.9).double().mean()
    assert 0.9 <= float(share) < 0.93
