"""Sums of series and groups, reconciled."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from core.predictions.document import to_document
from core.predictions.prediction_table import to_table
from models.evaluation.detector import Detector
from models.evaluation.path_calibration import (
    PathCalibration,
    Residuals,
    SumCalibration,
    Worth,
)
from models.exceptions import InvalidInput
from models.features.columns import Columns
from models.forecasting.forecast import Forecast
from models.forecasting.observation import PLAIN
from models.forecasting.rollout import Paths
from models.forecasting.totals.series_groups import (
    Groups,
    projection,
    read_groups,
    reconciled,
    summing_matrix,
)
from models.forecasting.totals.sums import Spread, couple, fit_rho, fit_theta, pair
from models.prediction.options import PredictOptions, ResolvedOptions, Totals
from models.prediction.prediction import RowPrediction, to_prediction
from tests.models.conftest import randn
from tests.models.forecasting.series_cases import LOGARITHM

KEYS, STEPS = ("a", "b", "c"), 4
TIMES = np.tile(np.arange(STEPS, dtype=float), len(KEYS))


def columns(region: str, size: float) -> Columns:
    return {
        "region": np.array([region] * 5, object),
        "size": np.full(5, size),
        "price": np.arange(5.0),
    }


SERIES = [columns("north", 1.0), columns("south", 2.0), columns("north", 2.0)]


def read(asked: Totals, series: list[Columns] = SERIES) -> Groups:
    return read_groups(asked, KEYS, series, TIMES)


def test_columns_group_series_by_their_values() -> None:
    found = read(Totals(groups=("region", "size")))
    assert dict(zip(found.names, found.members, strict=True)) == {
        "region=north": (0, 2),
        "region=south": (1,),
        "size=1": (0,),
        "size=2": (1, 2),
    }


def test_lists_of_series_are_groups_and_a_declared_sum_counts_once() -> None:
    groups = {"a": ("b", "c"), "pair": ("b", "c")}
    assert read(Totals(groups=groups)) == Groups(("a", "pair"), ((1, 2), (1, 2)))
    declared = read(Totals(groups=groups, reconcile=True))
    assert declared.declared == ((0, (1, 2)),)
    assert declared.bottom(3) == [1, 2]
    assert read(Totals(series=True)) == Groups() == read(Totals())


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        (Totals(groups={"x": ("a", "d")}), "/totals/groups/x"),
        (Totals(groups={"x": ("a", "a")}), "/totals/groups/x"),
        (Totals(groups=("country",)), "/totals/groups/0"),
        (Totals(groups=("region", "price")), "/totals/groups/1"),
        (Totals(groups={"x": ("a",)}, reconcile=True), "/totals/reconcile"),
        (Totals(groups={"a": ("b",), "b": ("c",)}, reconcile=True), "/totals/groups/a"),
    ],
)
def test_what_is_no_group_is_named(asked: Totals, path: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read(asked)
    assert error.value.path == path


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_sums_of_two_series_have_the_correlation_and_paths_stay_whole(rho: float) -> None:
    """20,000 paths know a correlation to 0.007; before, all series have the same noise."""
    draws = randn(20_000, 1, STEPS).cumsum(-1).expand(-1, 3, -1).contiguous()
    found = pair(draws, rho, 5)
    sums = np.corrcoef(found.sum(-1).numpy().T)
    np.testing.assert_allclose(sums[np.triu_indices(3, 1)], rho, atol=0.03)
    for k in range(3):
        first, last = (one[one[:, 0].argsort()] for one in (draws[:, k], found[:, k]))
        torch.testing.assert_close(first, last, rtol=0, atol=0)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.8])
def test_rho_is_found_from_errors_at_the_same_times(rho: float) -> None:
    """500 times with 4 series: the likelihood's curvature leaves an error of about 0.03."""
    shared, own = randn(500, 1, seed=1), randn(500, 4, seed=2)
    errors = 2 * (rho**0.5 * shared + (1 - rho) ** 0.5 * own).flatten().numpy()
    times = np.repeat(np.arange(500), 4).tolist()
    assert fit_rho(errors, times, 1.0) == pytest.approx(rho, abs=0.08)


def answered(groups: Groups, asked: Totals, rho: float = 0.5) -> RowPrediction:
    """Independent steps of deviation 1 around 10, 20 and 30, and series that go together by ρ."""
    noise = randn(400, 10, 3, STEPS, seed=4)
    means = 10.0 * torch.arange(1, 4, dtype=torch.float64).view(1, 1, 3, 1).expand_as(noise)
    sums = SumCalibration(0.0, Residuals((1.0,), 9.0), rho=rho)
    calibration = PathCalibration(1.0, 0.0, STEPS, (1.0,), 9, 9.0, sums=sums)
    drawn = Paths(means + noise, means, torch.ones_like(noise), means)
    forecast = Forecast(drawn, calibration=calibration, groups=groups)
    options = ResolvedOptions(
        totals=asked, seed=0, sampler="monte_carlo", top=1, horizon=STEPS, return_mc_errors=True
    )
    members = [[KEYS[k] for k in some] for some in groups.members]
    found = to_prediction(
        forecast.summarise(options), options, Detector("epistemic_variance"), "forecasting", None
    ).with_constants(groups=groups.names, members=members)
    times = np.tile(np.arange(float(STEPS)), 3)
    return found.with_values(series=np.repeat(KEYS, STEPS).tolist(), time=times)


def test_a_group_is_as_uncertain_as_its_series_go_together() -> None:
    """n series and h steps of deviation 1: the variance h n (1 + (n − 1) ρ), from 4,000 paths."""
    asked = Totals((50.0,), series=True, groups={"ends": ("a", "c"), "b": ("b",)})
    found = answered(read(asked), asked)
    sums, document = found.parts["series_sums"], to_document(found)["totals"]
    np.testing.assert_allclose(sums["mean"], [60, 120, 180, 240])
    assert sums["deviation"][-1] == pytest.approx((4 * 3 * 2) ** 0.5, rel=0.05)
    ends, own = document["groups"]
    assert (ends["group"], ends["series"]) == ("ends", ["a", "c"])
    np.testing.assert_allclose(ends["steps"]["mean"], 40)
    np.testing.assert_allclose(ends["sums"]["mean"], [40, 80, 120, 160])
    assert ends["sums"]["deviation"][-1] == pytest.approx((4 * 2 * 1.5) ** 0.5, rel=0.05)
    (interval,) = ends["sums"]["intervals"]
    assert interval["upper"][-1] == pytest.approx(160 + 1.645 * 12**0.5, abs=0.4)
    assert ends["sums"]["exceeds"][0]["probability"] == pytest.approx([0, 1, 1, 1])
    for name in ("mean", "median", "deviation", "mc_error"):  # a group of one is this one
        values = document[name][STEPS : 2 * STEPS]
        np.testing.assert_allclose(own["sums"][name], values, err_msg=name)
    below = to_table(found).slice(3 * STEPS)
    assert below["group"].to_pylist() == ["ends"] * STEPS + ["b"] * STEPS
    np.testing.assert_array_equal(below["total_mean"][:STEPS], ends["sums"]["mean"])


def test_declared_sums_and_their_series_agree_in_every_draw() -> None:
    """b̃_i = b_i + v_i ÷ (v_T + Σ v) (T − Σ b), with the paths of T in the order of those of Σ b.

    This is the projection with W = diag(v) for a single sum.
    """
    paths = torch.stack([100 + 4 * randn(300, 2, seed=1), 30 + randn(300, 2, seed=2)], dim=1)
    paths = torch.cat([paths, 50 + 2 * randn(300, 1, 2, seed=3), randn(300, 1, 2, seed=5)], 1)
    means = paths[:5] + 1
    groups = Groups(("T",), ((1, 2),), ((0, (1, 2)),))
    found, of_means = reconciled(paths, means, groups)
    parts = paths[:, 1:3]
    order = parts.sum((1, 2)).argsort().argsort()
    total = paths[:, 0][paths[:, 0].sum(1).argsort()[order]]
    variances = paths.var(0, correction=0)
    share = variances[1:3] / variances[:3].sum(0)
    expected = parts + share * (total - parts.sum(1)).unsqueeze(1)
    torch.testing.assert_close(found[:, 1:3], expected)
    torch.testing.assert_close(found[:, 0], expected.sum(1))
    torch.testing.assert_close(found[:, 3], paths[:, 3])  # no sum has it
    torch.testing.assert_close(of_means[:, 0], of_means[:, 1:3].sum(1))
    apart = (means[:, 0] - means[:, 1:3].sum(1)).unsqueeze(1)
    torch.testing.assert_close(of_means[:, 1:3], means[:, 1:3] + share * apart)


def test_totals_of_a_hierarchy_agree() -> None:
    """Here 10 is declared the sum of 20 and 30: all give way by a third of the 40 between them.

    4,000 paths know each variance to 2 %, and so what a series gives way to 0.4.
    """
    asked = Totals(groups={"a": ("b", "c"), "only b": ("b",)}, reconcile=True)
    found = answered(read(asked), asked, rho=0.0)
    names = ("totals", "group_sums", "series_sums")
    totals, groups, of_series = (found.parts[name] for name in names)
    mean = totals["mean"].reshape(3, STEPS)
    np.testing.assert_allclose(mean[:, 0], [10 + 40 / 3, 20 - 40 / 3, 30 - 40 / 3], atol=1.0)
    np.testing.assert_allclose(mean[0], mean[1] + mean[2])
    for name in ("mean", "median", "deviation", "lower", "upper"):
        own, grouped = totals[name], groups[name]
        np.testing.assert_allclose(grouped[:STEPS], own[:STEPS], err_msg=name)
        np.testing.assert_allclose(grouped[:STEPS], of_series[name])
        np.testing.assert_allclose(grouped[STEPS:], own[STEPS : 2 * STEPS])
    assert "conformal_lower" not in totals.values


S = summing_matrix([[0, 1, 2, 3], [0, 1], [2, 3]], 4)  # a total of two groups of two


def test_the_summing_matrix_has_sums_above_the_bottom_series() -> None:
    assert S.tolist() == [
        [1, 1, 1, 1],
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        *torch.eye(4).tolist(),
    ]
    with pytest.raises(ValueError, match="give some of 0 to 3"):
        summing_matrix([[0, 4]], 4)
    with pytest.raises(ValueError, match="give some of 0 to 3"):
        summing_matrix([[]], 4)


def test_two_parts_and_their_sum_share_what_is_left_over() -> None:
    """Least squares of (total, a, b) = (10, 3, 4): the rest 3 goes in thirds to the three nodes."""
    totals = torch.tensor([[10.0, 3.0, 4.0]], dtype=torch.float64)
    found = totals @ projection(summing_matrix([[0, 1]], 2)).mT
    np.testing.assert_allclose(found.numpy(), [[9.0, 4.0, 5.0]])


def test_the_right_covariance_has_the_least_errors() -> None:
    """4,000 forecasts of 0: errors of the total variance tr(S (Sᵀ W⁻¹ S)⁻¹ Sᵀ), to 5 %."""
    root = torch.tril(randn(7, 7, seed=1)) + 2 * torch.eye(7).double()
    covariance = root @ root.T
    errors = randn(4_000, 7, seed=2) @ root.T
    found = {
        "mint": errors @ projection(S, covariance).mT,
        "variances": errors @ projection(S, torch.diag(covariance.diagonal())).mT,
        "least squares": errors @ projection(S).mT,
        "bottom up": errors[:, 3:] @ S.T,
    }
    size = {name: float(draws.square().sum(1).mean()) for name, draws in found.items()}
    expected = torch.trace(S @ torch.linalg.inv(S.T @ torch.linalg.solve(covariance, S)) @ S.T)
    assert size["mint"] == pytest.approx(float(expected), rel=0.05)
    others = ("variances", "least squares", "bottom up")
    assert size["mint"] <= min(size[name] for name in others)


SUMMED_STEPS = 6


def correlation_of(draws: Tensor) -> np.ndarray:
    return np.corrcoef(draws[:, 0].numpy().T)


@pytest.mark.parametrize("theta", [-1.0, -0.5, 0.3, 1.0])
def test_theta_moves_the_correlation_and_steps_keep_their_draws(theta: float) -> None:
    """Of 20,000 random walks: a correlation is known to 0.007."""
    walks = randn(20_000, 1, SUMMED_STEPS).cumsum(-1)
    own, moved = correlation_of(walks), couple(walks, theta, 7)
    end = np.ones((SUMMED_STEPS, SUMMED_STEPS)) if theta > 0 else np.eye(SUMMED_STEPS)
    expected = (1 - abs(theta)) * own + abs(theta) * end
    np.testing.assert_allclose(correlation_of(moved), expected, atol=0.03)
    torch.testing.assert_close(moved.sort(0).values, walks.sort(0).values, rtol=0, atol=0)


def errors_of(kind: str, origins: int, seed: int) -> Tensor:
    """Errors of unit deviation at each step: independent, of a random walk, or one for all."""
    if kind == "independent":
        return randn(origins, SUMMED_STEPS, seed=seed)
    if kind == "same":
        return randn(origins, 1, seed=seed).expand(-1, SUMMED_STEPS)
    return (
        randn(origins, SUMMED_STEPS, seed=seed).cumsum(1) / torch.arange(1, SUMMED_STEPS + 1).sqrt()
    )


def forecast_of(kind: str, origins: int, seed: int = 100, *, paths: int = 5) -> Forecast:
    """Forecasts of 0 whose steps have the right deviation, and depend on each other by `kind`."""
    values = errors_of(kind, 40 * paths * origins, seed).reshape(40, paths, origins, SUMMED_STEPS)
    means = torch.zeros_like(values)
    return Forecast(Paths(values, means, torch.ones_like(values), means), PLAIN)


@pytest.mark.parametrize(
    ("predicted", "truth"),
    [("independent", "walk"), ("same", "independent"), ("walk", "walk"), ("walk", "same")],
)
def test_calibrated_sums_cover_what_they_promise(predicted: str, truth: str) -> None:
    """90 % intervals of sums, by 600 forecasts, of 20,000 fresh ones; not calibrated 63 to 100 %.

    600 errors tell a deviation to 3 %, and so a coverage to 1.2 points; that of the last of the
    sums is judged, to which the errors of all steps' scales add.
    """
    targets = errors_of(truth, 600, 1).flatten()
    calibration = forecast_of(predicted, 600).fit_calibration(targets, Worth(600.0), Worth(600.0))
    fresh = Forecast(forecast_of(predicted, 1, 7, paths=100).drawn, PLAIN, calibration)
    found = fresh.summarise(PredictOptions(totals=Totals())).parts["totals"]
    sums = errors_of(truth, 20_000, 3).sum(1).numpy()
    for before in ("", "conformal_"):
        lower, upper = (found[f"{before}{end}"][-1, 0] for end in ("lower", "upper"))
        assert np.mean((lower <= sums) & (sums <= upper)) == pytest.approx(0.9, abs=0.03), before
    assert abs(calibration.sums.theta) < 0.3 or predicted != truth


def test_theta_is_where_the_likelihood_of_known_variances_is_highest() -> None:
    """Errors of variance 2 between 1 (own) and 5 (together): 1 − θ + 5 θ = 2 at θ = ¼."""
    shape = (4_000, 1)
    zero, one = torch.zeros(shape).double(), torch.ones(shape).double()
    spreads = Spread(zero, one), Spread(zero, 0.5 * one), Spread(zero, 5**0.5 * one)
    found = fit_theta(spreads, 2**0.5 * one, 4_000.0)
    assert found == pytest.approx(0.25, abs=0.011)


def walks(samples: int, seed: int, *, is_log: bool) -> Forecast:
    """Paths of a random walk whose drift is uncertain."""
    noise = randn(samples, 4, 1, SUMMED_STEPS, seed=seed)
    drift = 0.3 * randn(samples, 1, 1, 1, seed=seed + 1_000_000)
    means = drift + torch.cat([torch.zeros_like(noise[..., :1]), 0.2 * noise[..., :-1]], -1)
    values = means + 0.2 * noise
    return Forecast(
        Paths(values, means, torch.full_like(values, 0.04), means), LOGARITHM if is_log else PLAIN
    )


@pytest.mark.parametrize("is_log", [False, True])
def test_totals_are_sums_of_whole_paths(is_log: bool) -> None:
    one = walks(50, 0, is_log=is_log)
    asked = PredictOptions(totals=Totals((2.0, 6.0)), quantiles=(0.25,), intervals=(0.8,))
    found = one.summarise(asked)
    sums = one.draws.numpy().cumsum(1)
    totals = found.parts["totals"]
    np.testing.assert_allclose(totals["mean"], found["mean"].cumsum())
    levels = [0.5, 0.1, 0.9, 0.25]
    names = ["median", "lower", "upper", "quantile"]
    expected = np.quantile(sums, levels, axis=0, method="weibull")
    for name, values in zip(names, expected, strict=True):
        np.testing.assert_allclose(totals[name].ravel(), values)
    above = [(sums > threshold).mean(0) for threshold in (2.0, 6.0)]
    np.testing.assert_allclose(totals["exceeds"], np.stack(above, 1))


def test_the_stated_errors_are_those_of_other_draws() -> None:
    """The deviation over 100 forecasts is known to 7 %, the mean stated error better."""
    sums = SumCalibration(0.5, Residuals((1.0,), 9.0))
    calibration = PathCalibration(1.0, 0.0, SUMMED_STEPS, (1.0,), 9, 9.0, sums=sums)
    asked = PredictOptions(
        totals=Totals((2.0,)), quantiles=(0.9,), return_mc_errors=True, interval_kinds=("credible",)
    )
    runs = [
        replace(walks(50, seed, is_log=False), calibration=calibration, seed=seed).summarise(asked)
        for seed in range(100)
    ]
    parts = [run.parts["totals"] for run in runs]
    for name in ("mean", "median", "quantile", "exceeds"):
        actual = np.stack([one[name].ravel() for one in parts]).std(0)[2:]
        stated = np.sqrt(np.mean([one.errors[name].ravel()[2:] ** 2 for one in parts], axis=0))
        np.testing.assert_allclose(stated, actual, rtol=0.25, err_msg=name)
