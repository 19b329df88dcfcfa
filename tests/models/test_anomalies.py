"""How improbable the newest values are: uniform where the model is right, small where it is not."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from models.features.columns import Columns
from models.forecasting.forecast import Forecast
from models.forecasting.histories import History, Newest
from models.forecasting.model import Forecaster
from models.forecasting.rollout import Rollout
from models.forecasting.series import Series
from models.forecasting.unusual import jointly, newest_values, score_newest
from models.forecasting.windows import Frame
from models.likelihoods import HeteroscedasticGaussian
from models.prediction.options import PredictOptions
from models.prediction.summary import Summary
from models.prediction.whole_draws import FittedDraws
from tests.models.forecasting.series_cases import LOGARITHM, QUICK, fit, sales
from tests.models.test_forecasting import MEMORY, NOISE, ar_draws

PHI, DRIFT = 0.5, 0.05
FRAME = Frame(context=1, season=1, observation=LOGARITHM)
COUNT = 500


def _walk(seed: int, count: int = COUNT) -> np.ndarray:
    """Changes of logarithms d_t = b + φ d_{t−1} + e; `_exact` knows b, φ and the noise."""
    random, change, values = np.random.default_rng(seed), 0.1, [0.0, 0.1]
    for _ in range(count):
        change = DRIFT + PHI * change + NOISE * random.normal()
        values.append(values[-1] + change)
    return np.exp(values)


def _exact() -> FittedDraws:
    """The weights of the process itself, in one draw."""
    _, _, fitted = ar_draws()
    source = fitted.source
    weights = {name: part[:1].clone() for name, part in source.weights.items()}  # type: ignore[attr-defined]
    weights["dense0.weight"][:, 0, 1] = PHI
    weights["dense0.bias"][:, 0] = DRIFT
    return FittedDraws(fitted.network, type(source)(weights, {}), 1)  # type: ignore[call-arg]


def _scored(values: np.ndarray, count: int, longest: int = 5) -> tuple[Newest, Forecast]:
    """The newest values against the process that made them."""
    one = Series(None, {"t": np.arange(float(len(values)))}, np.arange(len(values)), values)

    def read(pasts: Sequence[Series], ahead: Sequence[Columns], steps: int) -> History:
        windows = torch.from_numpy(np.log([past.values[-2:] for past in pasts]))
        return History(windows, torch.empty(count, steps, 0), torch.empty(count, 0), steps, windows)

    newest = newest_values([one], count, FRAME.span, longest, read)
    rollout = Rollout(FRAME, HeteroscedasticGaussian(), _exact(), 1, 300)
    return newest, Forecast(rollout.run(newest.history, 1, MEMORY), LOGARITHM)


def test_p_values_are_uniform_where_the_model_is_right() -> None:
    newest, forecast = _scored(_walk(0), COUNT)
    found = score_newest(newest, forecast, 0.01)
    p = found["p_value"][0]
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert abs(stats.spearmanr(p[1:], p[:-1]).statistic) < 0.15
    np.testing.assert_allclose(found["surprise"][0], -np.log2(p))
    assert found["flagged"].sum() == (p < 0.01).sum() <= 15


def test_the_first_step_has_the_exact_tail_far_out() -> None:
    """A value of 12 deviations above: P = 2 × 1.8e−33, which 1 − F(y) would lose."""
    values = _walk(1, 20)
    change = DRIFT + PHI * np.log(values[-2] / values[-3])
    for z in (12.0, -12.0, 2.0):
        values[-1] = values[-2] * np.exp(change + z * NOISE)
        newest, forecast = _scored(values, 1)
        p = score_newest(newest, forecast, 0.01)["p_value"][0, 0]
        assert p == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-2)


def test_values_without_a_prediction_are_not_scored() -> None:
    values = _walk(3, 12)
    values[-3:-1] = np.nan
    assert _scored(values, 3)[0].leads.tolist() == [0, 0, 3]  # as many steps ahead
    values[-4] = np.nan
    newest, forecast = _scored(values, 5, longest=2)  # the last is 4 steps after a known one
    found = score_newest(newest, forecast, 0.01)
    assert np.isnan(found["p_value"][0]).tolist() == [False, True, True, True, True]
    assert not found["flagged"][0, 1:].any()
    assert found["joint_p_value"][0] == pytest.approx(found["p_value"][0, 0])


def test_the_joint_p_value_is_fishers() -> None:
    p = torch.tensor([[0.03, 0.2, 0.4], [0.5, math.nan, 0.01], [math.nan] * 3]).double()
    found = jointly(p)
    for i, known in enumerate(([0.03, 0.2, 0.4], [0.5, 0.01])):
        assert float(found[i]) == pytest.approx(stats.combine_pvalues(known).pvalue)
    assert math.isnan(float(found[2]))


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    return fit(sales(), training=replace(QUICK, epochs=30))


def _anomalies(model: Forecaster, columns: dict[str, np.ndarray], count: int) -> Summary:
    answer = model.predict(columns, PredictOptions(samples=50, anomalies=count))
    assert len(answer.mean) == model.horizon
    return answer.parts["anomalies"]


def test_an_outlier_is_flagged_and_changes_nothing_before_it(forecaster: Forecaster) -> None:
    usual = _anomalies(forecaster, sales(), 6)
    assert not usual["flagged"][0, -1]
    odd = sales()
    odd["sales"][80] *= 2
    found = _anomalies(forecaster, odd, 6)
    assert found["flagged"][0].tolist()[2]
    assert found["p_value"][0, 2] < 1e-6
    np.testing.assert_allclose(found["p_value"][0, :2], usual["p_value"][0, :2])
    assert found["joint_flagged"][0]
    assert found["time"][0, 2] == odd["month"][80]
