"""Runs SGD at a constant rate, and collects the moments of its iterates for SWAG."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from models.config import Json
from models.exceptions import Diverged
from models.features.rows import evenly_spread
from models.inference.chains import flat_values
from models.inference.constant_sgd import ConstantSGD, given, tuned
from models.inference.fisher import ROWS
from models.inference.point import DrawsState
from models.inference.posterior import LogPosterior, gradient_of_prior
from models.inference.preconditioner import gather, spread
from models.inference.swag import SWAGState
from models.randomness import generator
from models.tabular.task import RowTask
from models.training.loop import EpochResult, Run

PER_EPOCH = 4  # iterates that enter the moments: about as far apart as they forget
_BURN_IN = 4  # the share of the epochs that are not collected is 1/4
_MOST_LENGTHS = 4.0  # of a step ÷ its usual length, of which chance makes hardly any


def plan_steps(
    task: RowTask,
    posterior: LogPosterior,
    fitted: DrawsState,
    *,
    batch: int,
    epochs: int,
    rate: float | None,
    momentum: float,
    seed: int,
) -> ConstantSGD:
    """The steps for the posterior's width, or those of a given rate with their predicted width."""
    values, count = flat_values(fitted), len(task.rows)
    some = task.take(evenly_spread(count, ROWS))
    if rate is None:
        start = torch.empty_like(values).normal_(generator=generator(seed, "sharpness"))
        return tuned(posterior, values, some, batch, start)
    steps = (epochs - epochs // _BURN_IN) * -(-count // batch)
    return given(posterior, values, some, batch=batch, rate=rate, momentum=momentum, steps=steps)


@dataclass
class AveragingRun(Run):
    """Constant-rate SGD on mini-batches that are drawn with replacement, after a fit.

    Without replacement the noise of an epoch's mini-batches would add up to 0 at its end.
    """

    task: RowTask
    posterior: LogPosterior
    plan: ConstantSGD
    state: SWAGState
    num_epochs: int
    momentum: float = 0.0  # of a given rate
    velocity: Tensor = field(init=False)
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def __post_init__(self) -> None:
        self.velocity = torch.zeros_like(flat_values(self.state.iterate))

    @property
    def epochs(self) -> int:
        return self.num_epochs

    @property
    def finished(self) -> bool:
        return self.step >= self.num_epochs * self._steps

    @property
    def result(self) -> SWAGState:
        return self.state.widened(self.plan.factor)

    @property
    def _steps(self) -> int:
        """Steps of an epoch."""
        return max(PER_EPOCH, -(-len(self.task.rows) // self.plan.batch))

    def pack(self) -> tuple[dict[str, Tensor], Json]:
        return {**self.state.pack(), "velocity": self.velocity.cpu()}, {"sums": self.sums}

    def unpack(self, tensors: dict[str, Tensor], counters: Json) -> None:
        device = self.task.device
        self.velocity = tensors.pop("velocity").to(device)
        self.state = SWAGState.unpack(tensors, self.state.num_weights).to(device)
        self.sums = counters["sums"]

    def advance(self) -> EpochResult | None:
        """Take one step; collect some times in an epoch, and keep the iterate at its end."""
        nll, penalty = self._take_step()
        self.sums = [self.sums[0] + nll, self.sums[1] + penalty]
        self.step += 1
        epoch, within = divmod(self.step, self._steps)
        ended = within == 0
        before = (self.step - 1) * PER_EPOCH // self._steps
        if self.step > self._burn_in and self.step * PER_EPOCH // self._steps > before:
            self.state.collect(epoch if ended else None)
        if not ended:
            return None
        nll, penalty = (total / self._steps for total in self.sums)
        self.sums = [0.0, 0.0]
        return EpochResult(epoch, nll + penalty, nll, penalty, None)

    @property
    def _burn_in(self) -> int:
        return self.num_epochs // _BURN_IN * self._steps

    def _take_step(self) -> tuple[float, float]:
        """Move the iterate; return −log P̂(D | w) and −log P(w) per row before the step."""
        values, count = flat_values(self.state.iterate), self.posterior.num_data
        slope, log_likelihood = self._slope(values)
        prior = float(self.posterior.log_prior(values))
        if not math.isfinite(float(slope.sum()) + log_likelihood):
            raise Diverged(
                f"averaging diverged at step {self.step}: a gradient is not finite. "
                "Lower method.learning_rate, or look for extreme values in the data",
                "/method/learning_rate",
            )
        if self.plan.root is None:
            self.velocity = self.momentum * self.velocity + slope / count
            moved = values + self.plan.rate * self.velocity
        else:
            root = self.plan.root
            moved = values + self.plan.rate * spread(root, self._clipped(gather(root, slope)))
        parts = self.posterior.split(moved).parameters()
        for old, new in zip(self.state.iterate.parameters(), parts, strict=True):
            old.data.copy_(new.view_as(old))
        return -log_likelihood / count, -prior / count

    def _clipped(self, slope: Tensor) -> Tensor:
        """A slope in whitened coordinates, at most some times as long as near a mode.

        There its components have the variance N/B. Far from a mode, or where a step has left the
        region that P describes, a longer one would end anywhere.
        """
        usual = math.sqrt(slope.numel() * self.posterior.num_data / self.plan.batch)
        return slope * (_MOST_LENGTHS * usual / slope.norm().clamp_min(1e-30)).clamp_max(1.0)

    def _slope(self, values: Tensor) -> tuple[Tensor, float]:
        """∇ log P̂ of a mini-batch, added over the ranks, and its log likelihood."""
        ranks, size, source = self.task.ranks, self.plan.batch, self.config.seed
        index = torch.randint(
            len(self.task.rows), (size,), generator=generator(source, "replaced", self.step)
        )
        mine = index[ranks.part(size).rows]
        total = values.new_zeros(values.shape[1] + 1)
        if len(mine):
            leaf = values.detach().requires_grad_()
            share = len(mine) / size
            part = share * self.posterior(leaf, self.task.take(mine)).log_likelihood.sum()
            (slope,) = torch.autograd.grad(part, leaf)
            total = torch.cat([slope[0], part.detach().view(1)])
        total = ranks.sum(total)
        prior = gradient_of_prior(self.posterior, values)
        return total[:-1].unsqueeze(0) + prior, float(total[-1])
