"""What a key tells: learned rows, the population that a new series is of, and the reason."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from models.config import (
    TrainingConfig,
)
from models.features.columns import Columns
from models.forecasting.identity import WIDTH, KeyedNetwork, key_helps, keyed_inputs, with_unseen
from models.forecasting.model import Forecaster
from models.forecasting.series import Series
from models.forecasting.windows import Frame
from models.inference.bbb import BBBState
from models.layers.tables import KeyTable
from models.networks import Inputs, TensorSlot, build_network
from models.posteriors.mean_field import MeanFieldNormal, softplus_inverse
from models.prediction.options import PredictOptions
from tests.models.forecasting.series_cases import LOGARITHM, PLAIN, SMALL, fit, in_panel

KEYS, STEPS = 8, 40
FRAME = Frame(context=2, season=1, observation=LOGARITHM)


def network(num_keys: int = 3) -> KeyedNetwork:
    inputs = Inputs(2 * 5 + 1, TensorSlot(0, (2, 5)))
    inner = build_network(SMALL, keyed_inputs(inputs, WIDTH), 2)
    return KeyedNetwork(inputs.tensor, KeyTable("embedding", num_keys, WIDTH), inner)


def test_a_row_is_read_at_every_step_and_beside_the_sequence() -> None:
    """By a loop over samples and rows that gives the inner network the concatenated inputs."""
    net, random = network(), torch.Generator().manual_seed(0)
    weights = {k: torch.randn(4, *s, generator=random) for k, s in net.layout.shapes.items()}
    x = torch.cat([torch.randn(6, 10, generator=random), torch.tensor([[0.0, 3, 1, 2, 2, 0]]).T], 1)
    found = net(weights, x)
    assert found.shape == (4, 6, 2)
    torch.testing.assert_close(net(weights, x.expand(4, -1, -1)), found)
    for s in range(4):
        own = {k: v[s] for k, v in weights.items()}
        torch.testing.assert_close(net(own, x), found[s])
        for i, row in enumerate(x):
            learned = own["embedding.weight"][int(row[-1])]
            steps = [torch.cat([step, learned]) for step in row[:-1].reshape(2, 5)]
            alone = net.inner(own, torch.cat([*steps, learned]).unsqueeze(0))
            torch.testing.assert_close(alone[0], found[s, i])


def test_a_new_series_is_one_of_the_population_that_the_posterior_shows() -> None:
    """N(mean of the locs, their variance + the mean variance); a pruned row of it stays."""
    net, random = network(500), torch.Generator().manual_seed(1)
    count = net.layout.num_weights
    loc = 3 + 2 * torch.randn(count, generator=random)
    rho = torch.full((count,), softplus_inverse(0.5))
    mask = torch.ones(count, dtype=torch.bool)
    mask[500 * WIDTH : 501 * WIDTH] = False
    state = with_unseen(BBBState(MeanFieldNormal(loc, rho, mask), {}), net, 0)
    q, rows = state.posterior.distribution(), loc[: 500 * WIDTH].unflatten(0, (-1, WIDTH))
    new = slice(500 * WIDTH, 501 * WIDTH)
    torch.testing.assert_close(q.loc[new], rows.mean(0))
    expected = (rows.var(0, correction=0) + 0.25).sqrt()
    torch.testing.assert_close(q.scale[new], expected, rtol=1e-4, atol=0)
    assert torch.equal(q.loc[501 * WIDTH :], loc[501 * WIDTH :])


def trends(seed: int = 0) -> Columns:
    """Each series moves by its own drift of −1 or 1, which a window of 2 steps hardly shows."""
    random = np.random.default_rng(seed)
    drift = np.where(np.arange(KEYS) % 2, 1.0, -1.0)[:, None]
    y = (drift + random.normal(size=(KEYS, STEPS))).cumsum(1)
    return in_panel([f"shop {i}" for i in range(KEYS)], y=y)


def options_of(identity: Any, **options: Any) -> dict[str, Any]:
    forecast = replace(PLAIN, key="shop", context=2, identity=identity)
    return {"forecast": forecast, **options}


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    once = TrainingConfig(
        epochs=100, learning_rate=0.03, fine_tune_epochs=2, refit=False, calibration_fraction=0.0
    )
    return fit(trends(), **options_of("embedding", pruning=(0.5,), training=once))


def history(key: str, columns: Columns) -> Columns:
    return {
        "time": columns["time"][:STEPS],
        "y": columns["y"][:STEPS],
        "shop": np.full(STEPS, key, dtype=object),
    }


def test_learned_rows_tell_series_apart_that_windows_do_not(forecaster: Forecaster) -> None:
    """The same past as two shops: their forecasts two steps ahead should be 4 apart."""
    columns = trends()
    falls, rises = (
        forecaster.predict(history(f"shop {i}", columns), PredictOptions()) for i in (0, 1)
    )
    assert rises.mean[1] - falls.mean[1] > 2
    assert not rises.get("reasons")[0]


@pytest.mark.parametrize("prune", [0.0, 0.5])
def test_an_unseen_key_is_flagged_and_less_certain(forecaster: Forecaster, prune: float) -> None:
    """Its drift is unknown: the means of draws scatter by about 1 per step."""
    columns, options = trends(), PredictOptions(prune=prune, samples=300)
    seen = forecaster.predict(history("shop 0", columns), options)
    new = forecaster.predict(history("a new shop", columns), options)
    assert new.out_of_distribution.all()
    (reason,) = new.get("reasons")[0]
    assert (reason.column, reason.code, reason.value) == ("shop", "unseen_level", "a new shop")
    assert new.variance["epistemic"][0] > 4 * seen.variance["epistemic"][0]
    assert 0.3 < new.variance["epistemic"][0] < 3


def walks(count: int, drift: float, seed: int = 0) -> list[Series]:
    """Logarithms are random walks with drifts from N(0, drift²), which 2 changes show in part."""
    random = np.random.default_rng(seed)
    drifts = drift * random.normal(size=(count, 1))
    values = np.exp(0.1 * (drifts + random.normal(size=(count, STEPS))).cumsum(1))
    return [Series(str(i), {}, np.arange(STEPS), one) for i, one in enumerate(values)]


def test_a_key_helps_where_series_differ_in_what_windows_do_not_show() -> None:
    for seed in range(3):
        assert key_helps(walks(40, 1.0, seed), FRAME)
        assert not key_helps(walks(40, 0.0, seed), FRAME)
        assert not key_helps(walks(9, 1.0, seed), FRAME)
