"""Models above a Gaussian process: what they say in a hole, however they are asked."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from models.artifact.export import build
from models.artifact.files import read_model, write_model
from models.config import LikelihoodConfig, TrainingConfig
from models.evaluation import acquisition
from models.features.columns import Columns
from models.features.target_shapes import describe_target
from models.likelihoods import ShapedLikelihood
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.tabular.unlabelled import informed
from models.training.train import train
from tests.models.golden.make import by
from tests.models.training.fitting import resolved, types_of

HOLE, ROWS, FAR = (np.array(part) for part in ([-0.2, 0.0, 0.2], [-1.5, -1.1, 1.2, 1.6], [9.0]))


def rows_of(x: np.ndarray) -> Columns:
    return {"x": np.asarray(x, float)}


@pytest.fixture(scope="module")
def model() -> TabularModel:
    """A wave with a hole in the middle, that networks alone find late."""
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, 400)
    x = x[np.abs(x) > 0.7][:150]
    columns = rows_of(x) | {"y": 10 + 3 * np.sin(4 * x) + 0.3 * random.normal(size=len(x))}
    training = TrainingConfig(effort="quick", epochs=20, background=16)
    config = resolved(columns, reads=True, training=training, pruning=(0.5,))
    found = train(columns, types_of(columns), config)
    assert isinstance(found, TabularModel)
    return found


def epistemic(model: TabularModel, x: np.ndarray, **options: object) -> np.ndarray:
    asked = PredictOptions(**{"samples": 200, **options})  # type: ignore[arg-type]
    return np.sqrt(model.predict(rows_of(x), asked).variance["epistemic"])


def test_the_race_keeps_it_and_says_what_it_gains(model: TabularModel) -> None:
    assert model.process is not None
    assert any(note.startswith("a Gaussian process is below the networks") for note in model.notes)


@pytest.mark.parametrize("prune", [0.0, 0.5])
@pytest.mark.parametrize("sampler", ["sobol", "monte_carlo", "moments"])
def test_doubt_is_large_in_the_hole_and_small_among_rows(
    model: TabularModel, sampler: str, prune: float
) -> None:
    among = epistemic(model, ROWS, sampler=sampler, prune=prune)
    assert among.max() < 0.4  # of a wave of amplitude 3 with noise 0.3
    assert epistemic(model, HOLE, sampler=sampler, prune=prune).min() > 3 * among.max()
    assert epistemic(model, FAR, sampler=sampler, prune=prune)[0] > 1.0


def test_rows_are_flagged_where_doubt_is_large(model: TabularModel) -> None:
    answer = model.predict(rows_of(np.concatenate([HOLE, FAR, ROWS])), PredictOptions(samples=200))
    assert answer.out_of_distribution.tolist() == [True] * 4 + [False] * 4
    codes = [found[0].code for found in answer["reasons"][:4]]
    assert codes == ["gap"] * 3 + ["out_of_range"]
    doubt = answer.variance["epistemic"]
    assert doubt[:4].min() > 9 * doubt[4:].max()


def test_a_label_in_the_hole_tells_most(model: TabularModel) -> None:
    x = np.concatenate([ROWS, HOLE, np.linspace(0.8, 1.9, 20)])
    z = informed(model, model.encode(rows_of(x)), PredictOptions(samples=200))
    best = acquisition.choose(z, 1).rows[0]
    assert x[best] in HOLE


@pytest.mark.parametrize("sampler", ["sobol", "moments"])
def test_compiled_loops_and_torch_say_the_same(model: TabularModel, sampler: str) -> None:
    rows = rows_of(np.concatenate([HOLE, ROWS, FAR]))
    asked = PredictOptions(samples=64, sampler=sampler)  # type: ignore[arg-type]
    found = []
    for backend in ("kernels", "torch"):
        with by(backend):
            found.append(model.predict(rows, asked))
    for name in ("mean", "median"):
        pair = [getattr(one, name) for one in found]
        np.testing.assert_allclose(*pair, rtol=1e-4, atol=1e-3)
    pair = [one.variance["epistemic"] for one in found]
    np.testing.assert_allclose(*pair, rtol=1e-3, atol=1e-3)


def test_whole_functions_vary_as_much_as_samples_say(model: TabularModel) -> None:
    rows = np.concatenate([HOLE, ROWS])
    asked = PredictOptions(samples=400, return_draws=True)
    answer = model.predict(rows_of(rows), asked)
    assert answer.draws is not None
    deviation = answer.draws.std(0)
    np.testing.assert_allclose(deviation, epistemic(model, rows), rtol=0.25)


def test_it_is_stored_with_the_model(model: TabularModel, tmp_path: Path) -> None:
    write_model(model, tmp_path)
    found = read_model(tmp_path)
    assert isinstance(found, TabularModel)
    np.testing.assert_allclose(epistemic(found, HOLE), epistemic(model, HOLE), rtol=1e-4)


def test_the_exported_module_has_it(model: TabularModel) -> None:
    export = build(model, samples=400)
    rows = np.concatenate([HOLE, ROWS])
    mean, _, variance = export.module(torch.from_numpy(rows).unsqueeze(1))
    answer = model.predict(rows_of(rows), PredictOptions(samples=400))
    doubt = np.sqrt(answer.variance["epistemic"])
    np.testing.assert_allclose(variance.sqrt().numpy(), doubt, rtol=0.25)
    assert (np.abs(mean.numpy() - answer.mean) < 0.4 * doubt).all()


def test_explanations_of_the_doubt_add_up(model: TabularModel) -> None:
    answer = model.predict(rows_of(HOLE), PredictOptions(samples=50, explain=True))
    parts, base = answer.values["epistemic_contribution"], answer.constants["base"]["epistemic"]
    np.testing.assert_allclose(parts.sum(1) + base, answer.variance["epistemic"], rtol=1e-4)


def likelihoods() -> Iterator[ShapedLikelihood]:
    values = np.random.default_rng(0).normal(size=200)
    target = describe_target(values, None, LikelihoodConfig(kind="gaussian"))[0]
    yield ShapedLikelihood(target, "normal", 1)
    yield ShapedLikelihood(target, "logistic", 3)


@pytest.mark.parametrize("likelihood", [*likelihoods()], ids=["normal", "logistic"])
def test_a_moved_likelihood_is_the_mean_over_moves(likelihood: ShapedLikelihood) -> None:
    """log ∫ p(y | location + m + s ε) φ(ε) dε by a quadrature: exact for one Gaussian."""
    torch.manual_seed(0)
    outputs = 0.3 * torch.randn(7, likelihood.num_outputs, dtype=torch.float64)
    offsets = torch.stack([torch.linspace(-0.3, 0.3, 7), torch.linspace(0.05, 0.4, 7)], 1).double()
    targets = torch.linspace(-1, 1, 7, dtype=torch.float64)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    moves = offsets[:, 0] + torch.from_numpy(nodes).unsqueeze(1) * offsets[:, 1]
    k = likelihood.components
    moved = torch.cat(
        [outputs[:, :k] + moves.unsqueeze(-1), outputs[:, k:].expand(40, -1, -1)], dim=-1
    )
    by_node = likelihood.log_prob(moved, targets, {})
    shares = torch.from_numpy(weights / weights.sum()).log().unsqueeze(1)
    expected = (by_node + shares).logsumexp(0)
    found = likelihood.log_prob(likelihood.moved(outputs, offsets), targets, {})
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6 if k == 1 else 0.1)
