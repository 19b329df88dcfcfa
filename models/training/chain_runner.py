"""Runs Markov chains over mini-batches, and keeps draws.

Where all rows take no longer than a few mini-batches, steps read all rows, and there is no noise of
mini-batches.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from models.config import Json
from models.exceptions import Diverged
from models.features.rows import Rows, evenly_spread
from models.inference.chains import ChainState, Kernel, controlled_gradient, flat_values
from models.inference.fisher import ROWS
from models.inference.langevin import Langevin, adapt
from models.inference.point import DrawsState
from models.inference.posterior import LogPosterior, Terms, gradient, gradient_of_prior
from models.inference.preconditioner import gather, preconditioner, sharpness
from models.randomness import generator
from models.tabular.task import RowTask
from models.training.loop import EpochResult, Run

_REPORTS = 100  # of a run, at most
_FEW = 4  # mini-batches that take hardly longer than the two gradients of control variates
_CHUNK = 4_096  # rows of a pass over all of them
_PAIRS = 8  # mini-batches from which the gradient's noise is measured


def begin_chains(
    task: RowTask, posterior: LogPosterior, kernel: Kernel, fitted: DrawsState, seed: int
) -> ChainState:
    """Chains that start wider apart than the posterior.

    Fits of networks without hidden layers end at the same mode: they are dispersed. Those of others
    end at modes far from each other.
    """
    values, count = flat_values(fitted), len(task.rows)
    some = task.take(evenly_spread(count, ROWS))
    root = preconditioner(posterior, values, some)
    state = ChainState.begin(fitted, len(kernel.kept_steps), root)
    if not posterior.network.mask_widths:
        state.disperse(generator(seed, "disperse", device=task.device))
    return state


@dataclass
class ChainRunner(Run):
    """Moves chains step by step. Its `epochs` are reports, evenly spread over the steps."""

    task: RowTask
    kernel: Kernel
    posterior: LogPosterior
    state: ChainState

    def __post_init__(self) -> None:
        kept = self.kernel.kept_steps
        self.num_steps = kept[-1]
        self._kept = {step: i for i, step in enumerate(kept)}

    @property
    def epochs(self) -> int:
        return min(_REPORTS, self.num_steps)

    @property
    def finished(self) -> bool:
        return self.step >= self.num_steps

    @property
    def result(self) -> ChainState:
        return self.state

    def pack(self) -> tuple[dict[str, Tensor], Json]:
        return self.state.pack(), {}

    def unpack(self, tensors: dict[str, Tensor], counters: Json) -> None:
        self.state = self.state.restored(tensors)

    def advance(self) -> EpochResult | None:
        """Move all chains by one step, and keep their positions after the kernel's `kept_steps`."""
        kernel, state = self.kernel, self.state
        if isinstance(kernel, Langevin):
            self._prepare(kernel)
        noise = generator(self.config.seed, "walk", self.step, device=self.task.device)
        terms = kernel.move(self.posterior, state, self._rows(), self.step, noise)
        check_finite(terms, self.step, by_gradient=not kernel.uses_all_rows)
        self.step += 1
        if self.step in self._kept:
            state.kept[self._kept[self.step]] = state.values
        return self._report(terms)

    @property
    def _reads_all(self) -> bool:
        few = self.task.num_batches(self.config) <= _FEW
        return self.kernel.uses_all_rows or few

    def _rows(self) -> Rows:
        return self.task.expanded if self._reads_all else self.task.take(self._next_batch()[1])

    def _prepare(self, kernel: Langevin) -> None:
        """Measure the step size and centre the control variates, where the kernel asks for it."""
        state = self.state
        if kernel.config.step_size is None and kernel.adapts(self.step):
            adapt(state, self._sharpness(), self._noise(kernel), kernel.most)
        if kernel.centres(self.step):
            state.anchor.copy_(state.values)
            if not self._reads_all:
                state.slope.copy_(self._slope())

    def _sharpness(self) -> Tensor:
        """λ of each chain at its values, on some of the rows."""
        count = len(self.task.rows)
        rows = self.task.take((evenly_spread(count, _CHUNK // 2) + 1) % count)
        start = torch.empty_like(self.state.values)
        start.normal_(generator=generator(self.config.seed, "sharpness", device=self.task.device))
        return sharpness(self.posterior, self.state.root, self.state.values, rows, start)

    def _noise(self, kernel: Langevin) -> Tensor:
        """E|Rᵀ(ĝ − g)|² of each chain: half the mean square difference of two mini-batches'."""
        state = self.state
        if self._reads_all or not kernel.samples(self.step):  # the anchor may be far away
            return torch.zeros_like(state.rate)
        order = self.task.batches(self.config, -1 - self.step)[: 2 * _PAIRS]
        rows = [self.task.take(index) for index in order]
        slopes = [controlled_gradient(self.posterior, state, batch)[1] for batch in rows]
        gathered = torch.stack([gather(state.root, slope) for slope in slopes])
        return gathered.var(0).sum(1)

    def _slope(self) -> Tensor:
        """∇ log P of all rows at the chains' values."""
        posterior, values = self.posterior, self.state.values
        count = len(self.task.rows)
        prior = gradient_of_prior(posterior, values)
        total = torch.zeros_like(prior)
        for index in torch.arange(count).split(_CHUNK):
            _, slope = gradient(posterior, values, self.task.take(index))
            total += (slope - prior) * (len(index) / count)
        return total + prior

    def _report(self, terms: Terms) -> EpochResult | None:
        done, before = (step * self.epochs // self.num_steps for step in (self.step, self.step - 1))
        if done == before:
            return None
        nll = -float(terms.log_likelihood.mean()) / self.task.num_data
        penalty = -float(terms.log_prior.mean()) / self.task.num_data
        return EpochResult(done, nll + penalty, nll, penalty, None)


def count_reports(kernel: Kernel) -> int:
    """The number of reports of a run."""
    return min(_REPORTS, kernel.kept_steps[-1])


def check_finite(terms: Terms, step: int, *, by_gradient: bool) -> None:
    """Raise `Diverged` if a chain that follows gradients has a density that is not finite.

    Proposals of a random walk may have a density of 0: they are rejected.
    """
    if by_gradient and not math.isfinite(float(terms.log_density.sum())):
        raise Diverged(
            f"a chain diverged at step {step}: its log density is not finite. "
            "Lower method.step_size, or look for extreme values in the data",
            "/method/step_size",
        )
