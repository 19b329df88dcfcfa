"""Markov chains over weight vectors: several in parallel, in one batched product.

A kernel moves them over mini-batches. Where all rows take no longer than a few mini-batches, steps
read all rows, and there is no noise of mini-batches.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from models.config import Json
from models.exceptions import Diverged
from models.features.rows import Rows, evenly_spread
from models.fitting.loop import EpochResult, Run
from models.fitting.row_task import RowTask
from models.inference import diagnostics
from models.inference.method import Finished, Fit, Stages
from models.inference.point import DrawsState, PointEstimates
from models.inference.posterior import (
    ROWS,
    LogPosterior,
    PerChain,
    Root,
    Terms,
    Values,
    flat_values,
    gather,
    gradient,
    gradient_of_prior,
    preconditioner,
    sharpness,
    spread,
)
from models.posteriors.priors import GaussianPrior
from models.randomness import generator

JITTER = 2.0  # posterior standard deviations: wider than the posterior, as R-hat needs it
_REPORTS = 100  # of a run, at most
_FEW = 4  # mini-batches that take hardly longer than the two gradients of control variates
_CHUNK = 4_096  # rows of a pass over all of them
_PAIRS = 8  # mini-batches from which the gradient's noise is measured


@dataclass(frozen=True)
class ChainState:
    """The current positions of the chains, and the draws that were kept; updated in place.

    Only Metropolis uses `density`, `log_scale` and `accepted`, only Langevin dynamics the last
    five.

    Args:
        root: R of the preconditioner.
        rate: ε of the first step; 0 until it is measured.
        anchor, slope: where control variates are centred, and ∇ log P of all rows there.
        heat, counted: Σ over steps of −ε (w − anchor)·∇ log P, and Σ ε, in the first step's ε.
    """

    values: Values
    kept: Float[Tensor, "draws chains values"]
    density: PerChain
    log_scale: PerChain
    accepted: PerChain
    root: Root
    rate: PerChain
    anchor: Values
    slope: Values
    heat: PerChain
    counted: PerChain

    @classmethod
    def begin(cls, fitted: DrawsState, draws: int, root: Root | None = None) -> "ChainState":
        """Start one chain from each member of an ensemble."""
        values = flat_values(fitted)
        kept = values.new_zeros(draws, *values.shape)
        zeros = (values.new_zeros(len(values)) for _ in range(6))
        density, log_scale, accepted, rate, heat, counted = zeros
        root = torch.ones_like(values) if root is None else root
        places = values.clone(), torch.zeros_like(values)
        return cls(values, kept, density, log_scale, accepted, root, rate, *places, heat, counted)

    @property
    def temperature(self) -> float:
        """⟨−(w − c)·∇ log P⟩ ÷ values, the mean of all chains; 1 if they sample the posterior.

        By integration by parts it is 1 for any density and any constant c. In a Gaussian it is the
        mean over all directions of the chains' variance ÷ the posterior's. NaN if nothing was
        counted.
        Source: Leimkuhler and Matthews 2015, §6.1.3, the configurational temperature.
        """
        per_chain = self.heat / self.counted
        return float(per_chain.mean()) / self.values.shape[1]

    def pack(self) -> dict[str, Tensor]:
        """The tensors by name, on the CPU."""
        return {name: value.detach().cpu() for name, value in vars(self).items()}

    def restored(self, tensors: dict[str, Tensor]) -> "ChainState":
        """A copy with packed tensors, on this state's device."""
        return replace(self, **{name: t.to(self.values.device) for name, t in tensors.items()})

    def draws(self, posterior: LogPosterior) -> DrawsState:
        """Return the kept draws in an order in which the first n are spread evenly, for any n.

        The chains take turns; each chain's draws come in bit-reversed order: first, middle,
        quarters.
        """
        order = sorted(range(len(self.kept)), key=lambda i: f"{i:032b}"[::-1])
        return posterior.split(self.kept[order].flatten(0, 1))


@dataclass(frozen=True)
class Kernel(ABC):
    """A transition kernel, by its settings alone."""

    uses_all_rows: ClassVar[bool] = False

    config: Any

    @property
    @abstractmethod
    def kept_steps(self) -> tuple[int, ...]:
        """The steps, counted from 1, after which a draw is kept; the last one ends the run."""

    @property
    def num_reports(self) -> int:
        """The number of reports of a run."""
        return min(_REPORTS, self.kept_steps[-1])

    def samples(self, step: int) -> bool:
        """Whether the chains should have reached the posterior, so that draws may be kept."""
        return True

    def centres(self, step: int) -> bool:
        """Whether control variates are centred anew before this step, counted from 0."""
        return False

    def adapts(self, step: int) -> bool:
        """Whether the step size is measured anew before this step."""
        return False

    def adapt(self, state: ChainState, sharpness: PerChain, noise: PerChain) -> None:
        """Set each chain's ε from the curvature's λ and E|Rᵀ(ĝ − g)|² at its values."""
        return

    @abstractmethod
    def move(
        self, posterior: LogPosterior, state: ChainState, batch: Rows, step: int, source: Generator
    ) -> Terms:
        """Move all chains by one step, in place; return the terms of log P̂."""

    def describe(self, state: ChainState) -> Json:
        """Metrics of a finished run beside those of `diagnostics.diagnose`."""
        return {}


def controlled_gradient(
    posterior: LogPosterior, state: ChainState, batch: Rows
) -> tuple[Terms, Values]:
    """Return the terms of log P̂, and an unbiased estimate of its gradient.

        ∇ log P̂(w) = ∇ log P̂_B(w) − ∇ log P̂_B(a) + ∇ log P(a)

    with the gradient of all rows at the anchor a. Its noise vanishes at the anchor, where that of a
    mini-batch alone is √N too large for large N (Baker et al. 2019, arXiv 1706.05439, eq. 6).
    """
    if len(batch) >= posterior.num_data:
        return gradient(posterior, state.values, batch)
    both, slopes = gradient(posterior, torch.cat([state.values, state.anchor]), batch)
    here, there = slopes.chunk(2)
    half = len(here)
    terms = Terms(both.log_likelihood[:half], both.log_prior[:half])
    return terms, here - there + state.slope


class Chains(PointEstimates):
    """Chains that start from the `map` fits of an ensemble. Each sets its `kernel`."""

    kernel: ClassVar[type[Kernel]]
    reads_from_disk = False
    in_one_process = True
    counts_members = "chains"

    @property
    def vectors(self) -> int:
        return int(self.config.chains)

    @classmethod
    def epochs(cls, config: Any, fitted: int) -> int:
        return cls.kernel(config).num_reports

    def finish(self, fit: Fit, stages: Stages) -> Finished:
        """Run the chains; their diagnosis on held-out rows becomes metrics and notes."""
        problem, kernel = stages.problem, self.kernel(self.config)
        model, task = problem.model, problem.task
        prior = GaussianPrior(self.config.prior_sigma)
        posterior = LogPosterior(self.network, self.likelihood, prior, self.num_data)
        begun = begin_chains(task, posterior, kernel, fit.state, stages.config.training.seed)
        runner = ChainRunner(task, stages.config.training, kernel, posterior, begun)
        state: ChainState = stages.run("chains", runner)
        steps, chains = state.kept.shape[:2]
        members = self.layout.members  # each of them is a chain of its own
        in_order = model.engine.whole(posterior.split(state.kept.flatten(0, 1)))
        rows = problem.scores.inputs[: diagnostics.ROWS]
        samples = steps * chains * members
        outputs, _ = model.engine.outputs(in_order, rows, 0, samples)
        by_chain = outputs.unflatten(0, (steps, chains * members))
        diagnosis = diagnostics.diagnose(by_chain, kernel.describe(state))
        factors = {samples: diagnosis.error_factor}
        return Finished(state.draws(posterior), diagnosis.metrics, diagnosis.notes, factors)


def begin_chains(
    task: RowTask, posterior: LogPosterior, kernel: Kernel, fitted: DrawsState, seed: int
) -> ChainState:
    """Chains that start wider apart than the posterior.

    Fits of networks without hidden layers end at the same mode: they are dispersed. Those of others
    end at modes far from each other.
    """
    rows = task.take(evenly_spread(len(task.rows), ROWS))
    root = preconditioner(posterior, flat_values(fitted), rows)
    state = ChainState.begin(fitted, len(kernel.kept_steps), root)
    if not posterior.network.mask_widths:  # by noise of `JITTER` times the preconditioner's scale
        noise = torch.empty_like(state.values)
        noise.normal_(generator=generator(seed, "disperse", device=task.device))
        state.values.add_(spread(root, noise), alpha=JITTER)
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
        return self.kernel.num_reports

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
        self._prepare(kernel)
        noise = generator(self.config.seed, "walk", self.step, device=self.task.device)
        rows = self.task.expanded if self._reads_all else self.task.take(self._next_batch()[1])
        terms = kernel.move(self.posterior, state, rows, self.step, noise)
        # Proposals of a random walk may have a density of 0: they are rejected.
        if not kernel.uses_all_rows and not math.isfinite(float(terms.log_density.sum())):
            raise Diverged(
                f"a chain diverged at step {self.step}: its log density is not finite. "
                "Lower method.step_size, or look for extreme values in the data",
                "/method/step_size",
            )
        self.step += 1
        if self.step in self._kept:
            state.kept[self._kept[self.step]] = state.values
        done, before = (step * self.epochs // self.num_steps for step in (self.step, self.step - 1))
        if done == before:
            return None
        nll = -float(terms.log_likelihood.mean()) / self.task.num_data
        penalty = -float(terms.log_prior.mean()) / self.task.num_data
        return EpochResult(done, nll + penalty, nll, penalty, None)

    @property
    def _reads_all(self) -> bool:
        few = self.task.num_batches(self.config) <= _FEW
        return self.kernel.uses_all_rows or few

    def _prepare(self, kernel: Kernel) -> None:
        """Measure the step size and centre the control variates, where the kernel asks for it."""
        state = self.state
        if kernel.adapts(self.step):
            count, values = len(self.task.rows), state.values
            rows = self.task.take((evenly_spread(count, _CHUNK // 2) + 1) % count)
            source = generator(self.config.seed, "sharpness", device=self.task.device)
            start = torch.empty_like(values).normal_(generator=source)
            largest = sharpness(self.posterior, state.root, values, rows, start)
            kernel.adapt(state, largest, self._noise(kernel))
        if kernel.centres(self.step):
            state.anchor.copy_(state.values)
            if not self._reads_all:
                state.slope.copy_(self._slope())

    def _noise(self, kernel: Kernel) -> Tensor:
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
