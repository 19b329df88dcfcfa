"""Conformal intervals of whole numbers: no wider than they need to be, on a known distribution."""

import numpy as np
import pytest
import torch

from models.evaluation.calibration import LabelledMixture, fit_calibration
from models.features.scales import IdentityScale
from models.features.targets import NumberTarget
from models.likelihoods.shaped import ShapedLikelihood
from models.prediction.shaped_mixture import ShapedMixture

ROWS = 4_000


def _predicted(rows: int) -> ShapedMixture:
    """Whole numbers around 0 with a scale of 2: about as many values as a die has."""
    values = np.random.default_rng(0).normal(0, 2, 1_000).round()
    target = NumberTarget.shaped(values, IdentityScale(), integer=True)
    likelihood = ShapedLikelihood(target, "logistic", 1)
    parts = likelihood.parts(torch.zeros(1, rows, likelihood.num_outputs), {})
    return ShapedMixture.of(target, parts, likelihood.location_bounds)


def _drawn(mixture: ShapedMixture, seed: int) -> torch.Tensor:
    """Targets from the predicted distribution, by its quantiles."""
    u = np.random.default_rng(seed).random(mixture.locs.shape[-1])
    drawn = torch.empty(len(u), dtype=torch.float64)
    for k in range(-60, 60):  # the smallest k with F(k) ≥ u
        value = torch.full((len(u),), float(-k), dtype=torch.float64)
        drawn = torch.where(mixture.cdf(value) >= torch.from_numpy(u), value, drawn)
    return drawn


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_a_conformal_interval_of_whole_numbers_is_the_narrowest_that_covers(level: float) -> None:
    mixture = _predicted(ROWS)
    labelled = LabelledMixture(mixture, _drawn(mixture, 1), None)
    calibration = fit_calibration([labelled], [labelled], shaped=True)
    fresh = _drawn(mixture, 2)
    ((lower, upper),) = calibration.intervals(calibration.apply(mixture), [level])  # type: ignore[union-attr]
    covered = float(((lower <= fresh) & (fresh <= upper)).double().mean())
    assert covered > level - 0.02  # standard errors of 4,000 rows: 0.008 and 0.005
    inside = ((lower < fresh) & (fresh < upper)).double().mean()
    assert float(inside) < level  # without its ends, which have probability, it does not cover
