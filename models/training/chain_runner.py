"""Runs Markov chains over mini-batches, and keeps draws."""

import math
from dataclasses import dataclass

from torch import Tensor

from models.config import Json
from models.exceptions import Diverged
from models.inference.chains import ChainState, Kernel, LogPosterior, Terms
from models.randomness import generator
from models.tabular.task import RowTask
from models.training.loop import EpochResult, Run

_REPORTS = 100  # of a run, at most


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
        kernel = self.kernel
        whole = kernel.uses_all_rows
        rows = self.task.expanded if whole else self.task.take(self._next_batch()[1])
        noise = generator(self.config.seed, "walk", self.step, device=self.task.device)
        terms = kernel.move(self.posterior, self.state, rows, self.step, noise)
        check_finite(terms, self.step, by_gradient=not kernel.uses_all_rows)
        self.step += 1
        if self.step in self._kept:
            self.state.kept[self._kept[self.step]] = self.state.values
        return self._report(terms)

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
