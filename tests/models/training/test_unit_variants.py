"""Variants by units: what they are, when they are stored, and what stays by weights."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.artifact.files import read_model, write_model
from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile
from models.inference.bbb import BBBState
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.fitted import Fitted
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel, make_ready
from models.tabular.preparation import prepare
from models.tabular.problem import RowProblem
from models.training.distributed import ALONE
from models.training.progress import Progress
from models.training.recipe import resolve
from models.training.train import train
from models.training.unit_variants import (
    are_as_good,
    can_pay,
    grow,
    shrink,
    trial_share,
    tuning_epochs,
)

TYPES = {"a": "number", "b": "number", "y": "number"}
HIDDEN = (256, 256)


def _columns() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 400))
    return {"a": a, "b": b, "y": a + 0.5 * b + 0.1 * random.normal(size=400)}


def _config(
    hidden: tuple[int, ...] = HIDDEN, pruning: tuple[float, ...] = (0.5, 0.9)
) -> ModelConfig:
    training = TrainingConfig(epochs=8, fine_tune_epochs=2, batch_size=64, learning_rate=0.005)
    config = ModelConfig(
        target="y", network=MLPConfig(hidden=hidden), training=training, pruning=(0.5, 0.9)
    )
    return resolve(config, [ColumnProfile(name=name, type="number") for name in TYPES], 400)


def _train(hidden: tuple[int, ...], report: Callable[[Progress], None]) -> TabularModel:
    model = train(_columns(), TYPES, _config(hidden), on_progress=report)
    assert isinstance(model, TabularModel)
    return model


@pytest.fixture(scope="module")
def reports() -> list[Progress]:
    return []


@pytest.fixture(scope="module")
def model(reports: list[Progress]) -> TabularModel:
    return _train(HIDDEN, reports.append)


@pytest.fixture(scope="module")
def problem() -> RowProblem:
    found = prepare(_columns(), TYPES, _config(), ALONE)
    assert type(found) is RowProblem
    return found


def _state(model: TabularModel, prune: float = 0.0) -> BBBState:
    state = model.variant(prune).state
    assert isinstance(state, BBBState)
    return state


def test_an_easy_table_is_pruned_by_units(model: TabularModel) -> None:
    """A linear function needs few of 256 units; half of the weights gone, fewer units lose nothing.

    The smaller network has the share of operations that its widths say.
    """
    assert model.variant(0.5).by == "units"
    fitted, full = model.fitted(0.5), model.fitted(0.0)
    assert isinstance(fitted, Fitted)
    assert max(fitted.local.widths[:2]) < 256
    assert fitted.operations < 0.6 * full.operations
    assert model.variant(0.5).state.num_weights <= 0.5 * _state(model).num_weights


def test_variants_say_what_was_ranked(model: TabularModel, tmp_path: Path) -> None:
    described = {v["prune"]: v for v in model.description["variants"]}
    assert "by" not in described[0.0]
    assert described[0.5]["by"] == "units"
    write_model(model, tmp_path)
    read = read_model(tmp_path)
    assert {p: read.variant(p).by for p in read.variants} == {
        p: model.variant(p).by for p in model.variants
    }


def test_small_networks_are_pruned_by_weights() -> None:
    """Their time is not that of the products."""
    small = _train((20, 20), lambda _: None)
    assert [small.variant(p).by for p in small.variants] == [None, "weights", "weights"]


def test_progress_never_goes_back_and_ends_at_one(
    model: TabularModel, reports: list[Progress]
) -> None:
    """Also where the number of epochs depends on which variant is better."""
    assert model.variants
    assert reports[-1].fraction == pytest.approx(1.0)
    assert all(report.fraction <= 1 for report in reports)
    assert any(report.stage == "prune-0.5-units" for report in reports)


def test_the_small_network_is_the_pruned_one(model: TabularModel, problem: RowProblem) -> None:
    """Shrunk and grown again, it predicts the same."""
    full = _state(model)
    smaller, small, mask = shrink(problem, full, 0.6)
    again = grow(small, full, mask)
    assert again.num_weights == small.num_weights == int(mask.sum())
    x = torch.randn(7, problem.rows.inputs.shape[1], generator=torch.Generator().manual_seed(1))
    moments = []
    for one, state in ((smaller, small), (problem, again)):
        network = one.model.network
        parts = state.posterior.distribution().moments()
        loc, variance = (network.layout.unflatten(part) for part in parts)
        noise = [torch.zeros(1, width) for width in network.noise_widths()]
        inputs = x if one.model.engine.expand is None else one.model.engine.expand(x)
        moments.append(network.local(loc, variance, inputs, noise))
    torch.testing.assert_close(moments[0], moments[1], rtol=1e-4, atol=1e-5)


def test_worse_units_are_not_stored(model: TabularModel, problem: RowProblem) -> None:
    """Units whose weights mean nothing lose against the full posterior, and never the other way."""
    full = _state(model)
    broken, small, mask = shrink(problem, full, 0.9)
    zeros = MeanFieldNormal(torch.zeros_like(small.posterior.loc), small.posterior.rho)
    useless = grow(replace(small, posterior=zeros), full, mask)
    assert not are_as_good(problem, useless, full)
    assert are_as_good(problem, full, useless)
    assert isinstance(make_ready(broken.model.network, small), Fitted)


def test_without_held_out_rows_nothing_is_chosen(model: TabularModel, problem: RowProblem) -> None:
    assert can_pay(problem, _state(model))
    assert not can_pay(replace(problem, stopping=None, calibration=None), _state(model))


@pytest.mark.parametrize(("fraction", "epochs"), [(0.5, 6), (0.75, 12), (0.95, 12)])
def test_smaller_networks_are_tuned_for_longer(fraction: float, epochs: int) -> None:
    """For as many epochs as take the time of three of the whole network, at most four times."""
    assert tuning_epochs(fraction, 3) == epochs


@pytest.mark.parametrize(("fraction", "share"), [(0.5, 0.2), (0.75, 0.2), (0.9, 0.6), (0.95, 0.8)])
def test_both_candidates_share_the_time_of_one(fraction: float, share: float) -> None:
    assert trial_share(fraction) == pytest.approx(share)


def test_both_kinds_answer_a_request(model: TabularModel) -> None:
    answers = [
        model.predict({"a": np.ones(3), "b": np.zeros(3)}, PredictOptions(prune=prune))
        for prune in model.variants
    ]
    for answer in answers:
        np.testing.assert_allclose(answer.mean, 1.0, atol=0.5)
