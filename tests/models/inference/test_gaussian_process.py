"""A Gaussian process beside exact posteriors, and functions whose prior is known."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from torch import Tensor

from models.inference.gaussian_process import (
    MOST_CENTRES,
    GaussianProcess,
    _log_posterior,
    spread_normals,
)

NOISE = 0.2


def draw(seed: int, rows: int, *, hole: float = 0.0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows of a function of length 0.5 and their targets; 200 other points and the function there.

    The other points are those of the hole, if there is one.
    """
    random = np.random.default_rng(seed)
    x, fresh = random.uniform(-2, 2, (2, 20 * rows + 2_000))
    x = x[np.abs(x) > 1.5 * hole][:rows]
    fresh = fresh[np.abs(fresh) < hole][:200] if hole else fresh[:200]
    every = np.concatenate([x, fresh])
    covariance = np.exp(-0.5 * (every[:, None] - every) ** 2 / 0.25) + 1e-6 * np.eye(len(every))
    values = np.linalg.cholesky(covariance) @ random.normal(size=len(every))
    y = values[:rows] + NOISE * random.normal(size=rows)
    parts = (x[:, None], y, fresh[:, None], values[rows:])
    return tuple(map(torch.from_numpy, parts))  # type: ignore[return-value]


def exact(process: GaussianProcess, x: Tensor, y: Tensor, at: Tensor) -> Tensor:
    """Mean and deviation of the exact posterior with the process's lengths, size and noise."""

    def prior(one: Tensor, other: Tensor) -> Tensor:
        distance = ((one / process.lengths)[:, None] - other / process.lengths).square().sum(-1)
        return process.size**2 * torch.exp(-0.5 * distance)

    noisy = prior(x, x) + process.noise**2 * torch.eye(len(x))
    near = prior(at, x)
    mean = near @ torch.linalg.solve(noisy, y)
    variance = process.size**2 - (near * torch.linalg.solve(noisy, near.T).T).sum(1)
    return torch.stack([mean, variance.sqrt()], 1)


@pytest.fixture(scope="module")
def fitted() -> tuple[GaussianProcess, Tensor, tuple[Tensor, ...], Tensor]:
    """A process whose centres are its rows, their offsets, the draw, and the folds."""
    drawn = draw(0, 120, hole=0.4)
    folds = torch.arange(120) % 3
    process, offsets = GaussianProcess.fit(drawn[0], drawn[1], None, folds)
    return process, offsets, drawn, folds


def test_with_all_rows_as_centres_it_is_the_exact_posterior(
    fitted: tuple[GaussianProcess, Tensor, tuple[Tensor, ...], Tensor],
) -> None:
    process, _, (x, y, at, _), _ = fitted
    assert len(x) <= MOST_CENTRES
    torch.testing.assert_close(process(at).double(), exact(process, x, y, at), rtol=0.02, atol=0.01)


def test_offsets_of_a_row_are_those_of_the_other_folds(
    fitted: tuple[GaussianProcess, Tensor, tuple[Tensor, ...], Tensor],
) -> None:
    process, offsets, (x, y, *_), folds = fitted
    for fold in range(3):
        out = folds == fold
        expected = exact(process, x[~out], y[~out], x[out])
        torch.testing.assert_close(offsets[out].double(), expected, rtol=0.02, atol=0.01)


def test_noise_is_found_and_the_length_is_no_longer_than_it_is(
    fitted: tuple[GaussianProcess, Tensor, tuple[Tensor, ...], Tensor],
) -> None:
    process, *_ = fitted
    assert float(process.noise) == pytest.approx(NOISE, rel=0.25)
    assert 0.2 < float(process.lengths) < 0.5  # a standard error shorter than the most likely one


def test_the_marginal_likelihood_and_its_gradient_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    x, z = torch.from_numpy(random.normal(size=(40, 3))), torch.from_numpy(random.normal(size=40))
    logs = torch.tensor([0.1, 0.4, -0.3, 0.2, -0.5], dtype=torch.float64)  # of l, a and σ
    lengths, size, noise = logs[:3].exp().numpy(), float(logs[3].exp()), float(logs[4].exp())
    kernel = ConstantKernel(size**2) * RBF(lengths) + WhiteKernel(noise**2)
    peer = GaussianProcessRegressor(kernel, optimizer=None).fit(x.numpy(), z.numpy())
    theta = peer.kernel_.theta
    value, gradient = peer.log_marginal_likelihood(theta, eval_gradient=True)
    found, slopes = _log_posterior(logs, x, z, torch.ones_like(z))
    # less the prior: lengths of median e √inputs and spread 1.5, sizes of median and spread 1
    beyond = torch.cat([(logs[:3] - 1 - 0.5 * math.log(3)) / 1.5, logs[3:4]])
    likelihood = found + 0.5 * float(beyond.square().sum()) - 20 * math.log(2 * math.pi)
    assert likelihood == pytest.approx(value, abs=5e-3)  # of the jitter, 1e-5 a²
    slopes[:4] += beyond / torch.tensor([1.5, 1.5, 1.5, 1.0])
    expected = gradient[[1, 2, 3, 0, 4]] * [1, 1, 1, 2, 2]  # scikit-learn's are of log a² and σ²
    np.testing.assert_allclose(slopes, expected, atol=5e-3)
    uneven, step = torch.linspace(0.2, 3, 40, dtype=torch.float64), 1e-5
    moved = [
        _log_posterior(logs + sign * step * torch.eye(5)[4], x, z, uneven)[0] for sign in (1, -1)
    ]
    of_noise = float(_log_posterior(logs, x, z, uneven)[1][4])
    assert of_noise == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=1e-5)


def test_short_lengths_of_six_inputs_are_not_taken_for_noise() -> None:
    """From long lengths alone the search ends where all is noise."""
    random = np.random.default_rng(1)
    x = random.normal(size=(500, 6))
    squares = np.square(x[:, None] - x).sum(-1)
    root = np.linalg.cholesky(np.exp(-0.5 * squares / 0.49) + 1e-6 * np.eye(500))
    y = root @ random.normal(size=500) + 0.3 * random.normal(size=500)
    rows = torch.from_numpy(x), torch.from_numpy(y / y.std())
    process, _ = GaussianProcess.fit(*rows, None, torch.zeros(500).long())
    assert float(process.noise) < 0.5
    assert float((process.lengths / 0.7).log().abs().max()) < math.log(1.5)


def test_intervals_hold_the_function_in_a_hole() -> None:
    """Of 12 functions, whose values in a hole are correlated: the mean has an error of 0.1."""
    covers = []
    for seed in range(12):
        x, y, at, truth = draw(seed, 100, hole=0.4)
        process, _ = GaussianProcess.fit(x, y, None, torch.zeros(100).long())
        mean, deviation = process(at).double().unbind(1)
        covers.append(float(((truth - mean).abs() <= 1.645 * deviation).double().mean()))
    assert np.mean(covers) > 0.6


def test_noise_that_differs_between_rows_costs_little() -> None:
    """The error of the mean is near that with the true noise, and far below that with one noise."""
    random = np.random.default_rng(0)
    x = torch.from_numpy(random.normal(size=(800, 2)))
    deviation, truth = 0.15 * torch.exp(x[:, 1]), torch.sin(x[:, 0])
    y, folds = truth + deviation * torch.from_numpy(random.normal(size=800)), torch.arange(800) % 4
    learned, fresh = slice(400), slice(400, 800)
    rows = x[learned], y[learned], None, folds[learned]

    def error(process: GaussianProcess) -> float:
        return float((process(x[fresh])[:, 0] - truth[fresh]).square().mean().sqrt())

    found, _ = GaussianProcess.fit(*rows)
    known, _ = GaussianProcess._given(*rows, deviation[learned].square() / 0.15**2)
    alike, _ = GaussianProcess._given(*rows, torch.ones_like(y[learned]))
    assert error(found) < 1.5 * error(known)
    assert error(found) < 0.7 * error(alike)


def test_it_knows_nothing_far_away_and_ever_more_where_rows_are() -> None:
    variances = []
    for rows in (200, 2_000, 20_000):
        random = np.random.default_rng(rows)
        x = torch.from_numpy(random.uniform(-2, 2, (rows, 1)))
        y = torch.sin(2 * x[:, 0]) + NOISE * torch.from_numpy(random.normal(size=rows))
        process, _ = GaussianProcess.fit(x, y, None, torch.arange(rows) % 2)
        inside = process(torch.linspace(-1.5, 1.5, 50).unsqueeze(1))
        variances.append(float(inside[:, 1].double().square().mean()))
        far = process(torch.tensor([[60.0]]))
        assert float(far[0, 1]) == pytest.approx(float(process.size), rel=1e-3)
    for few, many in pairwise(variances):  # of so many times the rows
        assert 0.05 < many / few < 0.2


def test_a_row_of_weight_two_counts_as_two_rows() -> None:
    x, y, at, _ = draw(3, 60)
    weights = 1 + torch.arange(60) % 2
    one, _ = GaussianProcess.fit(x, y, torch.ones(60), torch.zeros(60).long())
    heavy, _ = GaussianProcess.fit(x, y, weights.float(), torch.zeros(60).long())
    again = torch.arange(60).repeat_interleave(weights)
    known = exact(heavy, x[again], y[again], at)
    torch.testing.assert_close(heavy(at).double(), known, rtol=0.02, atol=0.01)
    assert not torch.allclose(one(at), heavy(at), atol=1e-3)


def test_one_that_only_widens_leaves_most_rows_as_they_are(
    fitted: tuple[GaussianProcess, Tensor, tuple[Tensor, ...], Tensor],
) -> None:
    """a² max(0, s² − u)/(a² − u) of the exact s², with half the lengths."""
    process, _, (x, y, hole, _), folds = fitted
    wider, offsets = process.widening(x, None, folds, 0.5)
    assert wider.only_widens
    assert not process.only_widens
    torch.testing.assert_close(wider.lengths, process.lengths / 2)
    inner = [
        exact(wider, x[folds != fold], y[folds != fold], x[folds == fold]) for fold in range(3)
    ]
    usual = torch.cat(inner)[:, 1].square().quantile(0.9)
    square, at = process.size**2, torch.cat([hole, torch.tensor([[60.0]])])
    beyond = exact(wider, x, y, at)[:, 1].square() - usual
    expected = (square * beyond.clamp_min(0) / (square - usual)).sqrt()
    torch.testing.assert_close(wider(at)[:, 1].double(), expected, rtol=0.02, atol=0.02)
    assert not wider(at)[:, 0].any()
    assert float(wider(at)[-1, 1]) == pytest.approx(float(process.size), rel=1e-3)
    assert not offsets[:, 0].any()
    assert float((offsets[:, 1] > 0.01 * process.size).double().mean()) == pytest.approx(
        0.1, abs=0.02
    )


def test_what_networks_state_too_is_counted_once_among_the_rows(
    fitted: tuple[GaussianProcess, Tensor, tuple[Tensor, ...], Tensor],
) -> None:
    """a² max(0, s² − u)/(a² − u): with the networks' variance it is s² in the rows, and in holes.

    u is the mean of the smaller variance of each row: in half of them that of the networks, a
    tenth of s², in the others s².
    """
    process, offsets, (x, y, hole, _), _ = fitted
    some, own = x[::3], process(x[::3])[:, 1].double().square()
    factor = torch.where(torch.arange(40) % 2 == 0, 0.1, 3.0)
    found, moved = process.beside(offsets, some, own * factor)
    u, square, at = (own * factor.clamp_max(1)).mean(), process.size**2, torch.cat([x, hole])
    expected = square * (exact(process, x, y, at)[:, 1].square() - u).clamp_min(0) / (square - u)
    torch.testing.assert_close(found(at)[:, 1].double().square(), expected, rtol=0.03, atol=5e-4)
    assert torch.equal(found(at)[:, 0], process(at)[:, 0])
    assert torch.equal(moved[:, 0], offsets[:, 0])
    middle = hole.abs()[:, 0] < 0.2
    ratio = found(hole)[middle, 1] / process(hole)[middle, 1]
    assert float(ratio.min()) > 0.9
    nothing, same = process.beside(offsets, some, torch.zeros(40))
    torch.testing.assert_close(same, offsets)
    torch.testing.assert_close(nothing(at), process(at))


def test_it_is_read_as_it_was_stored(
    fitted: tuple[GaussianProcess, Tensor, tuple[Tensor, ...], Tensor],
) -> None:
    process, _, (_, _, at, _), _ = fitted
    found = GaussianProcess.unpack(process.pack(), 1)
    assert found is not None
    assert torch.equal(found(at), process(at))
    assert GaussianProcess.unpack({}, 1) is None
    with pytest.raises(ValueError, match="process is for 1 inputs, not 2"):
        GaussianProcess.unpack(process.pack(), 2)


@pytest.mark.parametrize("samples", [16, 100])
def test_successive_normals_are_evenly_spread(samples: int) -> None:
    """Their mean is closer to 0 than that of independent ones, 1/√samples, by far."""
    normals = spread_normals(12345, samples)
    assert abs(float(normals.mean())) < 2 / samples
    assert float(normals.std()) == pytest.approx(1, abs=0.15)
    assert float(normals[: samples // 4].mean().abs()) < 0.6 / math.sqrt(samples // 4)
