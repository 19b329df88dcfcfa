"""Fitting by stochastic gradients: schedule, clipping, early stopping."""

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from models.config import Json
from models.config.training import required
from models.exceptions import Diverged
from models.fitting.loop import Carried, EpochResult, Run
from models.fitting.objectives import Loss, kl_weight, warmup
from models.inference.method import Method, State
from models.posteriors.layout import Layout
from models.randomness import generator

EVALUATIONS = 100  # at most about this many scores of the held-out data per fit
_COUNTERS = ("best_epoch", "epoch", "sums")


@dataclass
class FitState:
    """Everything that a fit changes beside its step; the configuration determines the rest.

    `average` is the exponential average of the states; without averaging it is `current` itself.
    """

    current: Any
    best: Any
    average: Any
    best_score: float = -math.inf
    best_epoch: int = 0
    epoch: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])  # of the epoch's losses
    carried: Carried = ()


@dataclass
class Trainer(Run):
    """Minimises a method's loss over the parameters of its state, in place.

    Args:
        begun: the state to start from.
        score: the score of a state on held-out data; higher is better.
        chooses: whether the best score chooses the epoch; otherwise scores are only reported.
        last_epoch: where to end; the schedule is still that of all epochs.
    """

    method: Method
    begun: InitVar[Any]
    score: Callable[[Any], float] | None = None
    chooses: bool = True
    last_epoch: int | None = None
    state: FitState = field(init=False)
    optimizer: torch.optim.Optimizer = field(init=False)

    def __post_init__(self, begun: State) -> None:
        self.chooses = self.chooses and self.score is not None
        average = begun if self.config.averaging_steps is None else begun.detach()
        self._attach(FitState(begun, begun.detach(), average))

    def pack(self) -> tuple[dict[str, Tensor], Json]:
        """All states, the optimiser's slots, what is carried, and the counters."""
        state = self.state
        tensors: dict[str, Tensor] = {}
        for name in ("current", "best", *(["average"] if self._averages else [])):
            packed = getattr(state, name).pack()
            tensors |= {f"{name}.{key}": value for key, value in packed.items()}
        for i, layer in enumerate(state.carried):
            tensors |= {f"carried.{i}.{j}": part.cpu() for j, part in enumerate(layer)}
        for i, slots in self.optimizer.state_dict()["state"].items():
            filled = {name: value for name, value in slots.items() if isinstance(value, Tensor)}
            tensors |= {f"optimizer.{i}.{k}": value.detach().cpu() for k, value in filled.items()}
        score = state.best_score if math.isfinite(state.best_score) else None  # JSON: no infinity
        return tensors, {"best_score": score, **{k: getattr(state, k) for k in _COUNTERS}}

    def unpack(self, tensors: dict[str, Tensor], counters: Json) -> None:
        score, device = counters["best_score"], self.task.device
        carried = _by_index("carried.", tensors).values()
        current = self._state("current.", tensors)
        state = FitState(
            current=current,
            best=self._state("best.", tensors),
            average=self._state("average.", tensors) if self._averages else current,
            best_score=-math.inf if score is None else score,
            carried=tuple(tuple(part.to(device) for part in layer.values()) for layer in carried),
            **{name: counters[name] for name in _COUNTERS},
        )
        self._attach(state)
        groups = self.optimizer.state_dict()["param_groups"]
        slots = _by_index("optimizer.", tensors)
        self.optimizer.load_state_dict({"state": slots, "param_groups": groups})

    def _state(self, prefix: str, tensors: dict[str, Tensor]) -> State:
        kind: type[State] = type(self.state.current)
        packed = _unprefixed(prefix, tensors)
        return kind.unpack(packed, self.method.layout.num_weights).to(self.task.device)

    def _attach(self, state: FitState) -> None:
        parameters = state.current.parameters()
        for parameter in parameters:
            parameter.requires_grad_()
        self.state = state
        rate = required(self.config.learning_rate, "learning_rate")
        if self.config.optimizer == "sgd":  # fused: one pass over the parameters per step
            momentum = self.config.momentum
            self.optimizer = torch.optim.SGD(parameters, lr=rate, momentum=momentum, fused=True)
        else:
            self.optimizer = torch.optim.Adam(parameters, lr=rate, fused=True)

    @property
    def _averages(self) -> bool:
        return self.config.averaging_steps is not None

    @property
    def epochs(self) -> int:
        return required(self.config.epochs, "epochs")

    @property
    def finished(self) -> bool:
        """Whether the last epoch is done, or patience has ended."""
        patience = self.config.patience or self.epochs
        since = max(self.state.best_epoch, self.warmup_epochs)
        impatient = self.chooses and self.state.epoch - since >= patience
        return self.state.epoch >= self._end or impatient

    @property
    def result(self) -> Any:
        """The best state seen."""
        return self.state.best

    @property
    def warmup_epochs(self) -> int:
        """Epochs before the KL has its full weight. Their states are never kept as the best."""
        return min(self.method.kl.warmup_epochs or 0, self.epochs - 1)

    @property
    def num_batches(self) -> int:
        return self.task.num_batches(self.config)

    @property
    def _end(self) -> int:
        return self.epochs if self.last_epoch is None else self.last_epoch

    def advance(self) -> EpochResult | None:
        """Take one step; after the last step of an epoch also score the held-out data."""
        state, (number, batch) = self.state, self._next_batch()
        terms = self._take_step(number, batch)
        state.sums = [a + b for a, b in zip(state.sums, terms, strict=True)]
        self.step += 1
        if number + 1 < self.num_batches:
            return None
        count = self.num_batches * self.method.members
        nelbo, nll, kl = (total / count for total in state.sums)
        state.epoch, state.sums, state.carried = state.epoch + 1, [0.0, 0.0, 0.0], ()
        return EpochResult(state.epoch, nelbo, nll, kl, self._keep_best())

    def _take_step(self, number: int, batch: Any) -> tuple[float, float, float]:
        """Take one step; return the negative ELBO, −log P(D | w) and the KL before it."""
        state, kl = self.state, self.method.kl
        noise = generator(self.config.seed, "step", self.step, device=self.task.device)
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate()
        weight = kl_weight(
            kl,
            batch=number,
            num_batches=self.num_batches,
            num_parameters=self.method.num_parameters,
        )
        weight *= warmup(self.step, self.warmup_epochs * self.num_batches)
        loss, carried = self.task.loss(
            self.method, state.current, batch, kl_weight=weight, noise=noise, carried=state.carried
        )
        parameters = state.current.parameters()
        for parameter in parameters:
            parameter.grad = None
        loss.nelbo.backward()
        terms = (loss.nll, loss.kl, loss.nelbo)
        loss = Loss(*self.task.ranks.sum_gradients(parameters, terms))
        norm = get_total_norm(p.grad for p in parameters if p.grad is not None)
        # read from the device at once, so that it is waited for once
        values = torch.stack([loss.nelbo.detach(), loss.nll, loss.kl, norm]).tolist()
        nelbo, nll, divergence, length = values
        named = {"negative log likelihood": nll, "KL": divergence, "gradient norm": length}
        for name, value in named.items():  # before a step that would make a weight NaN
            if not math.isfinite(value):
                raise Diverged(
                    f"training diverged at step {self.step}: the {name} is {value}. "
                    f"Look for extreme values in the data, or lower training.learning_rate, "
                    f"which was {self.config.learning_rate:g}",
                    "/training/learning_rate",
                )
        limit = self.config.gradient_clip or math.inf
        if length > limit:  # most steps are below it
            clip_members(parameters, self.method.layout, limit)
        self.optimizer.step()
        self._update_average()
        state.carried = tuple(tuple(part.detach() for part in layer) for layer in carried)
        return nelbo, nll, divergence

    @torch.no_grad()
    def _update_average(self) -> None:
        """Average over the last steps; at first over fewer, so that the initial state fades."""
        horizon = self.config.averaging_steps
        if horizon is None:
            return
        share = 1 / min(horizon, 1 + self.step / 3)
        for mean, value in zip(
            self.state.average.parameters(), self.state.current.parameters(), strict=True
        ):
            mean.lerp_(value, share)

    def _learning_rate(self) -> float:
        rate = required(self.config.learning_rate, "learning_rate")
        rate *= warmup(self.step, self.config.warmup_steps)
        if self.config.schedule in ("cosine", None):
            done = self.step / (self.epochs * self.num_batches)
            rate *= 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
        return rate

    def _keep_best(self) -> float | None:
        """Score the held-out data at some epochs, and keep a copy of the best state."""
        state, every = self.state, max(1, self.epochs // EVALUATIONS)
        last = state.epoch == self._end
        if last and not self.chooses:
            state.best, state.best_epoch = state.average.detach(), state.epoch
        if self.score is None or (state.epoch % every and not last):
            return None
        score = self.score(state.average)
        if self.chooses and score > state.best_score and state.epoch >= self.warmup_epochs:
            state.best, state.best_score = state.average.detach(), score
            state.best_epoch = state.epoch
        return score


def _unprefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with the prefix; the prefix is removed."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _by_index(prefix: str, tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """The tensors by number and name: `PREFIX0.h` is [0]["h"]."""
    parts: dict[int, dict[str, Tensor]] = {}
    for key, value in sorted(_unprefixed(prefix, tensors).items()):
        index, name = key.split(".", 1)
        parts.setdefault(int(index), {})[name] = value
    return dict(sorted(parts.items()))


def clip_members(parameters: list[Tensor], layout: Layout, limit: float) -> None:
    """Clip each member's gradient by its own norm.

    Members share tensors, but must take the steps that each would take alone.
    """
    gradients = []  # by weights or by point parameters: views [vectors, members, values]
    for gradient in (p.grad for p in parameters if p.grad is not None):
        if gradient.shape[-1:] == (layout.num_weights,):
            gradients.append(layout.blocks(gradient.view(-1, layout.num_weights)))
        else:
            gradients.append((gradient.view(-1, layout.members, 1),))
    norms = torch.stack(
        [torch.cat([block.norm(dim=-1) for block in blocks], dim=-1) for blocks in gradients]
    ).norm(dim=0)
    factors = (limit / norms).clamp_max(1.0)
    for blocks in gradients:
        counts = [block.shape[-2] for block in blocks]
        for block, factor in zip(blocks, factors.split(counts, dim=-1), strict=True):
            block.mul_(factor.unsqueeze(-1))
