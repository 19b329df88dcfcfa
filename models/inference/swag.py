"""SWAG: a Gaussian with the moments of SGD's iterates at a constant rate, after a fit.

    w ~ N(w̄, ½ diag(s²) + D Dᵀ / (2 (K − 1)))

w̄ and s² are the mean and variance of the collected iterates; the columns of D are the deviations
of K of them, at the ends of epochs. Deviations are from the final mean (in the paper from the
running mean), so that both terms estimate the same covariance. w includes the likelihood's point
parameters. Variances of weights are those of the iterates; half of the covariance is without
correlations, by definition.
Source: Maddox et al. 2019 (arXiv 1902.02476), eq. 1.

How wide the iterates are follows from the rate η and the preconditioner P of

    w ← w − η P ĝ(w),    ĝ the gradient of −log P̂ per row, of B rows drawn with replacement

With the covariance C of one row's gradient and the curvature Λ per row, they have

    PΛΣ + ΣΛP = (η/B) P C P.

For P = C⁻¹ and η = 2B/N this is Σ = Λ⁻¹/N, the posterior's (the theorem of optimal preconditioning
in Mandt et al. 2017). With steps that are not small, η = 2B/(N + B). C is the empirical Fisher
information ÷ N, to which the prior's precision is added: the prior has no noise. With a diagonal P
and C = Λ, Σ is P/N: the variance of the mean-field posterior.

The predicted factor of the standard deviations follows from the same equation with Λ = C + prior/N,
in the basis of Λ's directions, where rate η and a scalar P are given.
"""

import math
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from models.config import Json, SWAGConfig
from models.config.training import required
from models.exceptions import CorruptArtifact, Diverged
from models.features.rows import Rows, evenly_spread
from models.fitting.loop import EpochResult, Run
from models.fitting.row_task import RowTask
from models.inference.diagnostics import USUAL_WIDTHS
from models.inference.method import Finished, Fit, Stages, State, check_tensor
from models.inference.point import DrawsState, PointEstimates
from models.inference.posterior import (
    ROWS,
    LogPosterior,
    Root,
    fisher,
    flat_values,
    gather,
    gradient_of_prior,
    root_of,
    sharpness,
    spread,
)
from models.likelihoods import Likelihood
from models.networks import Network
from models.posteriors.priors import GaussianPrior
from models.randomness import derive_seed, generator

SHARE = 4  # mini-batches in all rows, at least: with fewer, steps would be as long as Newton's
PER_EPOCH = 4  # iterates that enter the moments: about as far apart as they forget
_STABLE = 0.5  # ηλ at most
_BURN_IN = 4  # the share of the epochs that are not collected is 1/4
_MOST_LENGTHS = 4.0  # of a step ÷ its usual length, of which chance makes hardly any
_MOMENTS = ("count", "mean", "squares", "snapshots")

MatrixOrDiagonal = Float64[Tensor, "values *columns"]


@dataclass(frozen=True)
class SWAGState(State):
    """The current iterate, and moments of the collected ones; all values are in one vector."""

    kind = "swag"
    purpose = "swag"

    iterate: DrawsState
    count: Int[Tensor, ""]
    mean: Float[Tensor, "values"]
    squares: Float[Tensor, "values"]  # Σ of squared deviations from the mean
    snapshots: Float[Tensor, "rank values"]

    @classmethod
    def begin(cls, iterate: DrawsState, rank: int) -> "SWAGState":
        """Start from a fit, with nothing collected."""
        values = flat_values(iterate)[0]
        zeros = torch.zeros_like(values)
        count = torch.zeros((), dtype=torch.int64, device=values.device)
        return cls(iterate, count, zeros, zeros.clone(), values.new_zeros(rank, len(values)))

    @property
    def num_weights(self) -> int:
        return self.iterate.num_weights

    @property
    def point(self) -> dict[str, Tensor]:
        return self.iterate.point

    def parameters(self) -> list[Tensor]:
        return self.iterate.parameters()

    def named(self) -> dict[str, Tensor]:
        return self.iterate.named() | {name: getattr(self, name) for name in _MOMENTS}

    def at_mean(self) -> DrawsState:
        return self._split(self.mean.unsqueeze(0))

    def pack(self) -> dict[str, Tensor]:
        return super().pack() | self.iterate.pack()

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "SWAGState":
        moments = [tensors[name] for name in _MOMENTS]
        return cls(DrawsState.unpack(tensors, num_weights), *moments)

    def check(self, network: Network, likelihood: Likelihood) -> None:
        self.iterate.check(network, likelihood)
        values = flat_values(self.iterate)[0].shape
        check_tensor("mean", self.mean, values)
        check_tensor("squares", self.squares, values)
        rank = self.snapshots.shape[0] if self.snapshots.ndim == 2 else 0
        check_tensor("snapshots", self.snapshots, (rank, *values))
        counted = self.count.shape == () and int(self.count) >= 1
        if rank < 2 or not counted or bool((self.squares < 0).any()):
            raise CorruptArtifact(
                "count must be at least 1, snapshots at least 2, and squares not negative"
            )

    @torch.no_grad()
    def collect(self, snapshot: int | None = None) -> None:
        """Add the current iterate to the moments by Welford's update, which avoids cancellation.

        Args:
            snapshot: the number of this iterate among those that are kept; None for others.
        """
        values = flat_values(self.iterate)[0]
        if snapshot is not None:
            self.snapshots[snapshot % len(self.snapshots)] = values
        self.count.add_(1)
        deviation = values - self.mean
        self.mean.add_(deviation / self.count)
        self.squares.add_(deviation * (values - self.mean))

    def widened(self, factor: float) -> "SWAGState":
        """A copy whose deviations from the mean are multiplied by the factor."""
        snapshots = self.mean + factor * (self.snapshots - self.mean)
        return replace(self, squares=factor**2 * self.squares, snapshots=snapshots)

    @property
    def num_noise(self) -> int:
        return len(self.mean) + len(self.snapshots)

    def draws(self, noise: Float[Tensor, "draws noise"]) -> DrawsState:
        """Return weight vectors and point parameters from standard normals."""
        halves = noise.to(self.mean).split([len(self.mean), len(self.snapshots)], dim=1)
        return self._split(self.rsample(*halves))

    def _split(self, values: Float[Tensor, "draws values"]) -> DrawsState:
        """Vectors of weights and point parameters as draws."""
        sizes = [self.num_weights, *[value.numel() for value in self.point.values()]]
        weights, *point = values.split(sizes, dim=1)
        named = zip(self.point.items(), point, strict=True)
        shaped = {k: p.reshape(-1, *old.shape[1:]) for (k, old), p in named}
        return replace(self.iterate, weights=weights, point=shaped)

    def rsample(
        self, diagonal: Float[Tensor, "draws values"], low_rank: Float[Tensor, "draws rank"]
    ) -> Float[Tensor, "draws values"]:
        """Return draws from standard normals for both terms of the covariance."""
        count = int(self.count)
        kept = min(count, len(self.snapshots))
        deviations = self.snapshots[:kept] - self.mean
        scale = (0.5 * self.squares / count).sqrt()
        spread = low_rank[:, :kept] @ deviations / math.sqrt(2 * (kept - 1))
        return torch.addcmul(self.mean + spread, diagonal, scale)


@dataclass(frozen=True)
class ConstantSGD:
    """Step, batch and preconditioner; steps of −η P ĝ.

    Args:
        rate: η, of the gradient per row.
        batch: rows drawn with replacement.
        root: R with N·P = R Rᵀ; None for P = 1.
        factor: what deviations from the mean are multiplied by, so that they are the posterior's.
        width: predicted standard deviation ÷ the posterior's after that, the median of all weights.
    """

    rate: float
    batch: int
    root: Root | None
    factor: float
    width: float

    @property
    def notes(self) -> tuple[str, ...]:
        """A note that gives the width, if it is not near the posterior's."""
        if USUAL_WIDTHS[0] <= self.width <= USUAL_WIDTHS[1]:
            return ()
        cause = "at this learning_rate" if self.root is None else "because the prior has no noise"
        note = (
            f"standard deviations of the weights are about {self.width:.2g} times the posterior's "
            f"{cause}, as predicted from curvature and noise at the fit"
        )
        return (note,)


def _noise_and_precision(
    posterior: LogPosterior, values: Float[Tensor, "values"], rows: Rows
) -> tuple[MatrixOrDiagonal, MatrixOrDiagonal]:
    """N·C and N·Λ, as `fisher`."""
    noise = fisher(posterior, values, rows)
    is_matrix = noise.ndim == 2
    prior = posterior.prior_precision(values.unsqueeze(0)).double()
    prior = prior + 1e-6 * ((noise.diag() if is_matrix else noise) + prior).mean()
    return noise, noise + (prior.diag() if is_matrix else prior)


class SWAG(PointEstimates):
    """A `map` fit, then SGD at a constant rate, whose iterates are averaged."""

    settings = SWAGConfig
    stored = SWAGState
    reads_from_disk = False

    @classmethod
    def epochs(cls, config: SWAGConfig, fitted: int) -> int:
        return config.epochs

    def finish(self, fit: Fit, stages: Stages) -> Finished:
        """Continue the fit at a constant rate; the state has the collected moments."""
        task, training, config = stages.problem.task, stages.config.training, self.config
        posterior = LogPosterior(
            self.network, self.likelihood, GaussianPrior(config.prior_sigma), self.num_data
        )
        seed = derive_seed(training.seed, "swag") % 2**31
        batch = min(required(training.batch_size, "batch_size"), self.num_data)
        plan = plan_steps(
            task,
            posterior,
            fit.state,
            batch=batch,
            epochs=config.epochs,
            rate=config.learning_rate,
            momentum=training.momentum,
            seed=seed,
        )
        begun = SWAGState.begin(fit.state.detach(), min(config.rank, config.epochs))
        again = replace(training, seed=seed)
        run = AveragingRun(task, again, posterior, plan, begun, config.epochs, training.momentum)
        return Finished(stages.run("swag", run), notes=plan.notes)


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
    """The steps for the posterior's width, or those of a given rate with their predicted width.

    With a given rate, in direction k with curvature λ and noise c per row and the rate η' = η/(1 −
    momentum), Σ_k = (η'/2B) c/λ, beside the posterior's 1/(Nλ). Of a window of t steps the variance
    about its own mean is less by 2 (x − 1 + e^−x)/x² of it, x = η'λt: slow directions have no time
    to spread.

    Args:
        batch: rows of a mini-batch, at most.
    """
    values, count = flat_values(fitted), posterior.num_data
    rows = task.take(evenly_spread(len(task.rows), ROWS))
    noise, precision = _noise_and_precision(posterior, values[0], rows)
    if rate is None:
        batch = max(1, min(batch, count // SHARE))
        wanted = 2 * batch / (count + batch)
        root = root_of(posterior, values[0], noise).unsqueeze(0)
        start = torch.empty_like(values).normal_(generator=generator(seed, "sharpness"))
        largest = float(sharpness(posterior, root, values, rows, start).max())
        rate = min(wanted, _STABLE / largest)
        if precision.ndim == 2:
            inverse = torch.linalg.inv(precision)
            share = (inverse @ noise @ inverse).diag() / inverse.diag()
        else:
            share = noise / precision
        width = float(share.sqrt().median())
        return ConstantSGD(rate, batch, root, math.sqrt(wanted / rate), width)
    steps = (epochs - epochs // _BURN_IN) * -(-len(task.rows) // batch)
    batch, effective, directions = max(1, min(batch, count)), rate / (1 - momentum), None
    if precision.ndim == 2:
        precision, directions = torch.linalg.eigh(precision)
        noise = (directions * (noise @ directions)).sum(0)
    x = (effective * steps * precision / count).clamp_min(1e-3)
    reached = effective / (2 * batch) * noise / precision * (1 - 2 * (x + torch.expm1(-x)) / x**2)
    exact = 1 / precision
    if directions is not None:
        reached, exact = directions.square() @ reached, directions.square() @ exact
    return ConstantSGD(rate, batch, None, 1.0, float((reached / exact).sqrt().median()))


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
        burn_in = self.num_epochs // _BURN_IN * self._steps
        if self.step > burn_in and self.step * PER_EPOCH // self._steps > before:
            self.state.collect(epoch if ended else None)
        if not ended:
            return None
        nll, penalty = (total / self._steps for total in self.sums)
        self.sums = [0.0, 0.0]
        return EpochResult(epoch, nll + penalty, nll, penalty, None)

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
