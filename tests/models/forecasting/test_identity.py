"""What a key tells: learned rows, the population that a new series is of, and the reason."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from models.artifact.files import read_model, write_model
from models.config import (
    EnsembleConfig,
    ForecastConfig,
    MethodConfig,
    ModelConfig,
    RecurrentConfig,
    SWAGConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, Columns
from models.forecasting.model import Forecaster
from models.forecasting.observation import LOGARITHM
from models.forecasting.panels.identity import WIDTH, keyed, usual_identity, with_unseen
from models.forecasting.panels.usefulness import _effects, key_helps
from models.forecasting.series import Series
from models.forecasting.windows import Frame
from models.inference.bbb import BBBState
from models.inference.mc_dropout import DropoutState
from models.inference.point import DrawsState
from models.layers.key_table import KeyTable
from models.networks import Inputs, KeyedNetwork, TensorSlot, build_network, keyed_inputs
from models.posteriors.mean_field import MeanFieldNormal, softplus_inverse
from models.prediction.answers.reasons import REASONS, Reason, Reasons
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from models.training.recipe import resolve
from models.training.train import train

TYPES = {"time": "number", "y": "number", "shop": "category"}
SMALL = RecurrentConfig(kind="rnn", hidden=(4,))
KEYS, STEPS = 8, 40


def network(num_keys: int = 3) -> KeyedNetwork:
    inputs = Inputs(2 * 5 + 1, TensorSlot(0, (2, 5)))
    inner = build_network(SMALL, keyed_inputs(inputs, WIDTH), 2)
    assert inputs.tensor is not None
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


def test_members_give_a_new_series_the_row_of_a_learned_one_and_a_single_vector_the_mean() -> None:
    net, random = network(5), torch.Generator().manual_seed(2)
    weights = torch.randn(3, net.layout.num_weights, generator=random)
    rows = weights[:, : 5 * WIDTH].unflatten(1, (5, WIDTH))
    new = slice(5 * WIDTH, 6 * WIDTH)
    members = with_unseen(DrawsState(weights, {}), net, 0).weights[:, new]
    same = (members.unsqueeze(1) == rows).all(-1)
    assert same.sum(1).tolist() == [1, 1, 1]
    assert len(set(same.int().argmax(1).tolist())) == 3
    for one in (DrawsState(weights[:1], {}), DropoutState(weights[0], torch.empty(0), {})):
        found = with_unseen(one, net, 0).weights[..., new].flatten()
        torch.testing.assert_close(found, rows[0].mean(0))


def trends(seed: int = 0) -> Columns:
    """Each series moves by its own drift of −1 or 1, which a window of 2 steps hardly shows."""
    random = np.random.default_rng(seed)
    drift = np.where(np.arange(KEYS) % 2, 1.0, -1.0)[:, None]
    y = (drift + random.normal(size=(KEYS, STEPS))).cumsum(1)
    names = np.array([f"shop {i}" for i in range(KEYS)], dtype=object)
    return {
        "time": np.tile(np.arange(float(STEPS)), KEYS),
        "y": y.ravel(),
        "shop": np.repeat(names, STEPS),
    }


def configure(columns: Columns, identity: Any, **options: Any) -> ModelConfig:
    key = None if options.pop("alone", False) else "shop"
    forecast = ForecastConfig(
        time="time",
        key=key,
        horizon=2,
        context=2,
        season=1,
        transform="none",
        identity=identity,
        classics=False,
    )
    given: dict[str, Any] = {
        "network": SMALL,
        "training": TrainingConfig(epochs=150, learning_rate=0.02),
    }
    config = ModelConfig(target="y", task="forecasting", forecast=forecast, **{**given, **options})
    profiles = [ColumnProfile(name=name, type=kind) for name, kind in TYPES.items()]
    return resolve(config, profiles, len(columns["y"]), lambda names: columns)


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    columns = trends()
    once = TrainingConfig(
        epochs=100, learning_rate=0.03, fine_tune_epochs=2, refit=False, calibration_fraction=0.0
    )
    config = configure(columns, "embedding", pruning=(0.5,), training=once)
    model = train(columns, TYPES, config)
    assert isinstance(model, Forecaster)
    return model


def reasons_of(prediction: RowPrediction) -> list[Sequence[Reason]]:
    answer = prediction.answers[REASONS]
    assert isinstance(answer, Reasons)
    return answer.rows


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
    assert not reasons_of(rises)[0]


@pytest.mark.parametrize("prune", [0.0, 0.5])
def test_a_series_of_an_unseen_key_is_flagged_and_less_certain(
    forecaster: Forecaster, prune: float
) -> None:
    """Its drift is unknown: the means of draws scatter by about 1 per step."""
    columns, options = trends(), PredictOptions(prune=prune, samples=300)
    seen = forecaster.predict(history("shop 0", columns), options)
    new = forecaster.predict(history("a new shop", columns), options)
    assert new.out_of_distribution.all()
    (reason,) = reasons_of(new)[0]
    assert (reason.column, reason.code, reason.value) == ("shop", "unseen_level", "a new shop")
    assert new.variance["epistemic"][0] > 4 * seen.variance["epistemic"][0]
    assert 0.3 < new.variance["epistemic"][0] < 3


def test_a_stored_forecaster_finds_the_same_rows(forecaster: Forecaster, tmp_path: Path) -> None:
    write_model(forecaster, tmp_path / "model")
    again = read_model(tmp_path / "model")
    assert isinstance(again, Forecaster)
    columns = trends()
    for key in ("shop 3", "a new shop"):
        one, two = (
            model.predict(history(key, columns), PredictOptions()) for model in (forecaster, again)
        )
        np.testing.assert_array_equal(one.mean, two.mean)


def walks(count: int, drift: float, seed: int = 0) -> list[Series]:
    """Logarithms are random walks with drifts from N(0, drift²), which 2 changes show in part."""
    random = np.random.default_rng(seed)
    drifts = drift * random.normal(size=(count, 1))
    values = np.exp(0.1 * (drifts + random.normal(size=(count, STEPS))).cumsum(1))
    return [Series(str(i), {}, np.arange(STEPS), one) for i, one in enumerate(values)]


@pytest.mark.parametrize("seed", range(5))
def test_a_key_helps_where_series_differ_in_what_windows_do_not_show(seed: int) -> None:
    frame = Frame(context=2, season=1, observation=LOGARITHM)
    assert key_helps(walks(40, 1.0, seed), frame)
    assert not key_helps(walks(40, 0.0, seed), frame)
    assert not key_helps(walks(9, 1.0, seed), frame)


def test_short_and_empty_series_say_nothing_of_the_key() -> None:
    nothing = [one.until(i % 3) for i, one in enumerate(walks(40, 1.0))]
    assert not key_helps(nothing, Frame(context=2, season=1, observation=LOGARITHM))


def test_effects_are_those_of_the_closed_form() -> None:
    """Balanced series: τ² = mean of m² − s²/n, and each mean shrinks by τ² / (τ² + s²/n)."""
    errors = torch.tensor([1.0, 3.0, -2.0, -2.0, 0.0, 6.0]).double()
    found = _effects(errors, torch.tensor([0, 0, 1, 1, 2, 2]), 4)
    within = (1 + 1 + 0 + 0 + 9 + 9) / 3  # sum of squares ÷ (6 − 3)
    between = (4 + 4 + 9) / 3 - within / 2
    shrunk = between / (between + within / 2)
    expected = torch.tensor([2 * shrunk, -2 * shrunk, 3 * shrunk, 0.0]).double()
    torch.testing.assert_close(found, expected)


def test_what_is_known_of_a_series_follows_from_the_series_and_the_method() -> None:
    columns = trends()
    swag, frame = SWAGConfig(kind="swag"), Frame(context=2, season=1, observation=LOGARITHM)
    config = configure(columns, None)
    assert config.forecast is not None
    assert config.forecast.identity == "one_hot"
    assert usual_identity(config.method, walks(40, 1.0), frame) == "embedding"
    assert usual_identity(config.method, walks(40, 0.0), frame) == "none"
    assert usual_identity(swag, walks(40, 1.0), frame) == "one_hot"
    refused: list[tuple[str, dict[str, Any]]] = [
        ("no embeddings", {"method": swag}),
        ("has no key", {"alone": True}),
    ]
    for message, options in refused:
        with pytest.raises(InvalidData, match=message) as caught:
            configure({k: v[:STEPS] for k, v in columns.items()}, "embedding", **options)
        assert caught.value.path == "/forecast/identity"


@pytest.mark.parametrize("method", [EnsembleConfig(kind="ensemble", members=2)])
def test_members_learn_rows_too(method: MethodConfig) -> None:
    columns = trends()
    few = TrainingConfig(epochs=3, learning_rate=0.02)
    config = configure(columns, "embedding", method=method, training=few)
    model = train(columns, TYPES, config)
    assert isinstance(model, Forecaster)
    assert len(model.predict(history("another", columns), PredictOptions()).mean) == 2


def test_without_identity_a_key_changes_nothing() -> None:
    columns = trends()
    config = configure(columns, "none", training=TrainingConfig(epochs=2), pruning=())
    model = train(columns, TYPES, config)
    assert isinstance(model, Forecaster)
    one, two = (
        model.predict(history(key, columns), PredictOptions()) for key in ("shop 0", "a new shop")
    )
    np.testing.assert_array_equal(one.mean, two.mean)


def test_a_network_without_embeddings_is_as_it_was() -> None:
    columns = trends()
    few = TrainingConfig(epochs=1)
    model = train(columns, TYPES, configure(columns, None, training=few, pruning=()))
    assert isinstance(model, Forecaster)
    inputs = Inputs(4 + KEYS, TensorSlot(0, (2, 2)))
    own = keyed(model.encoder, SMALL, inputs, 2)
    assert not isinstance(own, KeyedNetwork)
