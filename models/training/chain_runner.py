"""Runs chains: mini-batches, what is kept, reports, and a check every step."""

import math
from dataclasses import asdict, dataclass, field

from torch import Tensor

from models.config import Json, TrainingConfig
from models.exceptions import Diverged, Stopped
from models.features.rows import Rows, batches
from models.inference.chains import ChainState, Kernel, LogPosterior, Terms
from models.randomness import generator
from models.training.trainer import EpochResult, Observer, required

_ROUNDS = 100  # reports of a run


@dataclass
class Walker:
    """Moves chains step by step; in step with `Trainer`, it can be stopped and resumed anywhere."""

    kernel: Kernel
    posterior: LogPosterior
    rows: Rows
    config: TrainingConfig
    state: ChainState
    step: int = 0
    history: list[EpochResult] = field(default_factory=list)
    _order: list[Tensor] = field(default_factory=list, repr=False)  # of the present epoch

    @property
    def num_steps(self) -> int:
        return self.kernel.kept_steps[-1]

    @property
    def epochs(self) -> int:
        """Rounds that are reported."""
        return count_rounds(self.kernel)

    def saved(self) -> tuple[dict[str, Tensor], Json]:
        """All that a resumed run needs."""
        history = [asdict(result) for result in self.history]
        return self.state.pack(), {"step": self.step, "history": history}

    def resume(self, tensors: dict[str, Tensor], counters: Json) -> None:
        """Goes on from what `saved` gave."""
        self.state, self.step = self.state.restored(tensors), counters["step"]
        self.history = [EpochResult(**result) for result in counters["history"]]

    def run(self, observer: Observer) -> ChainState:
        """Runs to the last step.

        Raises:
            Stopped: between two steps, when the observer asks for it.
            Diverged: when a density is not finite.
        """
        kept = {step: i for i, step in enumerate(self.kernel.kept_steps)}
        while self.step < self.num_steps:
            if observer.should_stop():
                raise Stopped
            noise = generator(self.config.seed, "walk", self.step, device=self.rows.inputs.device)
            batch = self._batch()
            terms = self.kernel.move(self.posterior, self.state, batch, self.step, noise)
            check_finite(terms, self.step, by_gradient=not self.kernel.uses_all_rows)
            self.step += 1
            if self.step in kept:
                self.state.kept[kept[self.step]] = self.state.values
            self._report(terms, observer)
        return self.state

    def _batch(self) -> Rows:
        if self.kernel.uses_all_rows:
            return self.rows
        size = min(required(self.config.batch_size, "batch_size"), len(self.rows))
        epoch, number = divmod(self.step, -(-len(self.rows) // size))
        if number == 0 or not self._order:
            self._order = list(batches(len(self.rows), size, self.config.seed, epoch))
        return self.rows[self._order[number].to(self.rows.inputs.device)]

    def _report(self, terms: Terms, observer: Observer) -> None:
        done, before = (step * self.epochs // self.num_steps for step in (self.step, self.step - 1))
        if done == before:
            return
        rows = len(self.rows)
        nll = -float(terms.log_likelihood.mean()) / rows
        penalty = -float(terms.log_prior.mean()) / rows
        self.history.append(EpochResult(done, nll + penalty, nll, penalty, None))
        observer.on_epoch(self.history[-1])


def count_rounds(kernel: Kernel) -> int:
    """How often a run reports."""
    return min(_ROUNDS, kernel.kept_steps[-1])


def check_finite(terms: Terms, step: int, *, by_gradient: bool) -> None:
    """A chain that has left all numbers behind is told at once.

    A random walk's proposal may be as improbable as it likes: it is refused, no more.
    """
    if by_gradient and not math.isfinite(float(terms.log_density.sum())):
        raise Diverged(
            f"a chain diverged at step {step}: its log density is not finite. "
            "Lower method.step_size, or look for extreme values in the data",
            "/method/step_size",
        )
