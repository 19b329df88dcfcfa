"""Sums over several series: how series depend on each other, and what a request is answered."""

import numpy as np
import pytest
import torch
from torch import Tensor

from models.evaluation.path_calibration import (
    PathCalibration,
    Residuals,
    SumCalibration,
)
from models.forecasting.forecast import Forecast
from models.forecasting.rollout import Paths
from models.forecasting.totals.across import fit_rho, pair
from models.prediction.answers import totals
from models.prediction.options import ResolvedOptions, Totals

SERIES, STEPS = 3, 4


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_sums_of_two_series_have_the_correlation_and_paths_stay_whole(rho: float) -> None:
    """20,000 paths know a correlation to 0.007; before, all series have the same noise."""
    draws = normal(20_000, 1, STEPS).cumsum(-1).expand(-1, SERIES, -1).contiguous()
    found = pair(draws, rho, 5)
    sums = np.corrcoef(found.sum(-1).numpy().T)
    np.testing.assert_allclose(sums[np.triu_indices(SERIES, 1)], rho, atol=0.03)
    for k in range(SERIES):
        first, last = (one[one[:, 0].argsort()] for one in (draws[:, k], found[:, k]))
        torch.testing.assert_close(first, last, rtol=0, atol=0)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.8])
def test_rho_is_found_from_errors_at_the_same_times(rho: float) -> None:
    """500 times with 4 series: the likelihood's curvature leaves an error of about 0.03."""
    shared, own = normal(500, 1, seed=1), normal(500, 4, seed=2)
    errors = 2 * (rho**0.5 * shared + (1 - rho) ** 0.5 * own).flatten().numpy()
    times = np.repeat(np.arange(500), 4).tolist()
    assert fit_rho(errors, times, 1.0) == pytest.approx(rho, abs=0.08)


def test_few_or_no_pairs_of_series_tell_nothing() -> None:
    errors = normal(40, seed=3).numpy()
    assert fit_rho(errors, list(range(40)), 1.0) == 0.0
    same = np.repeat(errors[:2], 2)
    assert fit_rho(same, [0, 0, 1, 1], 0.01) < 0.05
    assert fit_rho(np.zeros(4), [0, 0, 1, 1], 1.0) == 0.0


def forecast(rho: float) -> Forecast:
    """3 series of random walks around 10 per step, with the same noise."""
    noise = normal(400, 10, 1, STEPS, seed=4).expand(-1, -1, SERIES, -1)
    means = torch.full_like(noise, 10.0)
    sums = SumCalibration(0.0, Residuals((1.0,), 9.0), rho=rho)
    calibration = PathCalibration(1.0, 0.0, STEPS, (1.0,), 9, 9.0, sums=sums)
    drawn = Paths(means + noise, means, torch.ones_like(noise), means)
    return Forecast(drawn, calibration=calibration)


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_a_sum_over_series_is_as_uncertain_as_these_go_together(rho: float) -> None:
    """Independent steps of deviation 1: the last sum has 12 (1 + 2 ρ), to 3 % of the deviation."""
    asked = ResolvedOptions(
        totals=Totals((120.0,), series=True),
        seed=0,
        sampler="monte_carlo",
        top=1,
        horizon=STEPS,
        intervals=(0.8,),
    )
    one = forecast(rho)
    summary = {name: np.asarray(values) for name, values in one.summarise(asked).items()}
    part = {
        name.removeprefix("totals "): values
        for name, values in summary.items()
        if name.startswith("totals ")
    }
    found = totals.answer(part, asked, None)
    assert found.series_sums is not None
    assert found.series_steps is not None
    assert len(found.mean) == SERIES * STEPS
    np.testing.assert_allclose(found.series_sums.mean, 30 * np.arange(1, STEPS + 1))
    np.testing.assert_allclose(found.series_steps.mean, 30)
    assert found.series_sums.upper is not None
    deviation = (found.series_sums.upper[-1, 0] - 120) / 1.2816
    assert deviation == pytest.approx((12 * (1 + 2 * rho)) ** 0.5, rel=0.06)
    assert found.series_sums.exceeds[-1, 0] == pytest.approx(0.5, abs=0.05)
    document, columns = found.document(), found.columns()
    np.testing.assert_array_equal(document["series"]["sums"]["mean"], found.series_sums.mean)
    np.testing.assert_allclose(
        columns["series_total_mean"][STEPS : 2 * STEPS], 30 * np.arange(1, 5)
    )
    assert columns["series_lower_0.8"].shape == (SERIES * STEPS,)
