"""Rows of one answer on several threads."""

import threading

import numpy as np
import pytest
import torch

from models.config import MLPConfig
from models.inference.bbb import BBBState
from models.likelihoods import HeteroscedasticGaussian
from models.networks import Inputs, build_network
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.compiled.compiler import compiler
from models.prediction.compiled.workers import divided, in_threads
from models.prediction.engine import Engine
from models.prediction.options import ResolvedOptions
from models.tabular.model import make_ready
from tests.models.prediction.test_compiled import NUMBERS


@pytest.mark.parametrize("rows", [0, 1, 16, 17, 100, 256])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_parts_are_all_rows_in_order(rows: int, threads: int) -> None:
    parts = divided(rows, 1e12, threads)
    assert len(parts) <= threads
    assert [r for part in parts for r in range(rows)[part]] == list(range(rows))
    assert all(part.start % 16 == 0 for part in parts)


def test_little_work_is_for_one_thread() -> None:
    assert divided(256, 1e6, 2) == [slice(0, 256)]


def test_parts_are_computed_at_once() -> None:
    """Each part waits for the others: they would never meet in one thread."""
    meeting = threading.Barrier(2, timeout=20)

    def compute(part: slice) -> tuple[int, int]:
        meeting.wait()
        return part.start, threading.get_ident()

    (first, own), (second, other) = in_threads(compute, divided(64, 1e12, 2))
    assert (first, second) == (0, 32)
    assert own == threading.get_ident() != other


def test_an_error_of_a_part_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda part: 1 / (32 - part.start), divided(64, 1e12, 2))


def test_results_do_not_depend_on_the_threads() -> None:
    """All bits: a row's lane computes the same in every block of lanes."""
    pytest.importorskip("numba", reason="without numba predictions use torch")
    assert compiler().wait()
    network = build_network(MLPConfig(hidden=(60, 60)), Inputs(4), 2)
    random = torch.Generator().manual_seed(0)
    weights = torch.randn(network.layout.num_weights, generator=random)
    state = BBBState(MeanFieldNormal(0.1 * weights, torch.full_like(weights, -4.0)), {})
    fitted, x = make_ready(network, state), torch.randn(200, 4, generator=random)
    engine = Engine(network, HeteroscedasticGaussian(), NUMBERS, compiles=True)  # type: ignore[arg-type]
    options = ResolvedOptions(
        samples=100, seed=5, sampler="sobol", top=1, horizon=1, intervals=(0.9,)
    )
    (alone,) = engine.summaries(fitted, x, options, None, None)
    parts = list(engine.summaries(fitted, x, options, None, None, threads=2))
    assert len(parts) == 2
    for name, values in alone.items():
        np.testing.assert_array_equal(np.concatenate([p[name] for p in parts]), values, name)
