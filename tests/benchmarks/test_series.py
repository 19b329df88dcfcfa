"""The benchmark of series: its scores, its origins, and its simulated panels."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.metrics import mean_pinball_loss

from benchmarks.series import cases
from benchmarks.series_scores import naive_error, peer_quantiles, scores
from benchmarks.simulated_panels import KINDS, simulate
from benchmarks.table_scores import PROBABILITIES


def test_the_crps_is_twice_the_mean_pinball_loss_over_the_naive_error() -> None:
    random = np.random.default_rng(0)
    truth = random.normal(size=200)
    quantiles = np.tile(norm.ppf(PROBABILITIES), (200, 1))
    found = scores(truth, quantiles[:, ::-1], 4.0)  # any order
    losses = [mean_pinball_loss(truth, np.full(200, q), alpha=p)
              for q, p in zip(quantiles[0], PROBABILITIES, strict=True)]  # fmt: skip
    assert found["scaled_crps"] == pytest.approx(2 * np.mean(losses) / 4, abs=1e-5)
    assert found["cover90"] == pytest.approx((np.abs(truth) <= 1.6449).mean(), abs=1e-4)
    assert naive_error(np.array([1.0, 5.0, 2.0, 9.0]), 2) == 2.5


def test_the_naive_peer_repeats_the_season_with_gaussian_intervals() -> None:
    past = np.random.default_rng(0).normal(size=40)
    found = peer_quantiles("SeasonalNaive", past, 4, 6)
    np.testing.assert_allclose(found[:, 5], np.tile(past[-4:], 2)[:6])
    half = found[:4, -1] - found[:4, 5]
    changes = past[4:] - past[:-4]
    np.testing.assert_allclose(half, 1.6449 * np.sqrt(np.mean(changes**2)), rtol=0.05)


def write_folder(folder: Path) -> None:
    t, random = np.arange(60), np.random.default_rng(0)
    values = 20 + t + 5 * np.sin(np.pi * t / 2) + random.normal(size=60)
    times = pd.date_range("2000-01-01", periods=60, freq="QS").strftime("%Y-%m-%d")
    pd.DataFrame({"time": times, "y": values}).to_csv(folder / "rises.csv", index=False)
    told = {name: {"season": 4, "horizon": 4, "origins": 3} for name in ("rises", "gone")}
    (folder / "series.json").write_text(json.dumps(told))


def test_forecasts_begin_before_each_of_the_last_stretches(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (case,) = cases(tmp_path, ["rises"])
    assert case.origins == (48, 52, 56)
    np.testing.assert_array_equal(case.truth(), case.values[48:])
    assert case.scale == naive_error(case.values[:48], 4)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_simulated_panel_has_whole_series(kind: str) -> None:
    columns = simulate(kind, 5, 60)
    assert len(columns["y"]) == len(np.unique(columns["key"])) * 60 == 300
    assert ((columns["y"] == 0).mean() > 0.4) == (kind == "intermittent")
