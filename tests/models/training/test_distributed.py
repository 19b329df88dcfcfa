"""Two processes fit the model that one fits, within rounding; ranks never go their own way."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.distributed import TCPStore

from models.artifact.files import read_model
from models.config import BBBConfig, GaussianPriorConfig
from models.fitting.distributed import Part, Ranks
from models.inference.bbb import BayesByBackprop, BBBState
from models.tabular.model import TabularModel
from models.training.train import TrainingRun, train
from tests.models.conftest import LinearRegression
from tests.models.training.distributed_cases import CASES, Case

# Sums in another order differ by 1e-7 of their size. Adam moves a weight by up to 0.01 per step
# and 0.2 over these runs; what differed in the method would show in the second digit.
ROUNDING = 1e-4


@pytest.mark.parametrize(("estimator", "num_rows"), [("weight", 2), ("local", 23)])
def test_the_parts_of_a_mini_batch_add_up_to_its_loss_and_gradient(
    linear_regression: LinearRegression, estimator: str, num_rows: int
) -> None:
    """In float64, with three ranks, some of which have no row of the smaller ones."""
    problem = linear_regression
    config = BBBConfig(estimator=estimator, prior=GaussianPriorConfig(sigma=0.8))  # type: ignore[arg-type]
    method = BayesByBackprop(problem.network, problem.likelihood, config, len(problem.rows))
    state = BBBState(problem.posterior.detach(), {})
    for parameter in state.parameters():
        parameter.requires_grad_()

    def terms(part: Part) -> list[torch.Tensor]:
        noise = torch.Generator().manual_seed(5)
        loss = method.loss(state, problem.rows[part.rows], 0.7, noise, part)
        return [
            loss.nll,
            loss.kl,
            loss.nelbo,
            *torch.autograd.grad(loss.nelbo, state.parameters()),
        ]

    whole = terms(Part.whole(num_rows))
    parts = [terms(Ranks(rank, 3).part(num_rows)) for rank in range(3)]
    for expected, summands in zip(whole, zip(*parts, strict=True), strict=True):
        torch.testing.assert_close(sum(summands), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("size", "total"), [(1, 5), (7, 2), (3, 128)])
def test_every_row_has_one_rank(size: int, total: int) -> None:
    parts = [Ranks(rank, size).part(total) for rank in range(size)]
    rows = [row for part in parts for row in range(total)[part.rows]]
    assert rows == list(range(total))
    counts = [part.stop - part.start for part in parts]
    assert max(counts) - min(counts) <= 1


@pytest.fixture(scope="session")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of all cases by two launchers with a process each, as two machines."""
    folder = tmp_path_factory.mktemp("ranks")
    # Kept here: a port that is free now may be taken when the launchers want it.
    store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"]
    meeting = ["--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-conf", "is_host=0"]
    meeting += ["--rdzv-endpoint", f"localhost:{store.port}"]
    module = ["-m", "tests.models.training.distributed_cases", str(folder)]
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    launchers = [
        subprocess.Popen([*torchrun, *meeting, *module], env=environment) for _ in range(2)
    ]
    try:
        assert [launcher.wait(timeout=240) for launcher in launchers] == [0, 0]
    finally:
        for launcher in launchers:
            launcher.kill()
            launcher.wait()
    return folder


def _fit(case: Case, checkpoints: Path | None = None) -> TabularModel:
    return train(case.columns, case.types, case.config, TrainingRun(checkpoint_dir=checkpoints))


def _assert_close(mine: TabularModel, theirs: TabularModel) -> None:
    """Parameters, scores and the course of the fit."""
    for prune in mine.variants:
        ours, others = mine.variant(prune), theirs.variant(prune)
        moments = [v.state.posterior.distribution().moments() for v in (ours, others)]
        for a, b in zip(*moments, strict=True):
            torch.testing.assert_close(a, b, rtol=ROUNDING, atol=ROUNDING)
        scores = [v.metrics["log_likelihood"] for v in (ours, others)]
        assert scores[0] == pytest.approx(scores[1], rel=ROUNDING, abs=ROUNDING)
    for name in ("nelbo", "nll", "kl"):
        courses = [[epoch[name] for epoch in model.history] for model in (mine, theirs)]
        np.testing.assert_allclose(*courses, rtol=ROUNDING, atol=ROUNDING)
    assert mine.notes == theirs.notes


@pytest.mark.stack
@pytest.mark.parametrize("name", list(CASES))
def test_two_processes_fit_the_model_that_one_fits(name: str, two_ranks: Path) -> None:
    _assert_close(_fit(CASES[name]), read_model(two_ranks / name))


@pytest.mark.stack
def test_a_stop_reaches_all_ranks_and_a_resumed_run_ends_the_same(
    two_ranks: Path,
) -> None:
    """The same bits; the second rank had no checkpoint of its own."""
    assert (two_ranks / "stopped-0").exists()
    assert (two_ranks / "stopped-1").exists()
    for path in (two_ranks / "weighted").glob("*.safetensors"):
        assert (two_ranks / "resumed" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.stack
def test_one_process_goes_on_where_two_stopped(two_ranks: Path, tmp_path: Path) -> None:
    kept = shutil.copytree(two_ranks / "half", tmp_path / "half")
    resumed = _fit(CASES["weighted"], kept)
    _assert_close(resumed, read_model(two_ranks / "weighted"))
