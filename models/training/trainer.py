"""Fitting by stochastic gradients: mini-batches, schedule, early stopping, a check every step."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from models.config import Json, KLConfig, TrainingConfig
from models.exceptions import Diverged, Stopped
from models.features.rows import Rows, batches
from models.inference.method import Method, State
from models.inference.objectives import Loss, kl_weight, warmup
from models.randomness import generator
from models.training.distributed import ALONE, Ranks

T = TypeVar("T")

_COUNTED = ("best_epoch", "epoch", "step", "sums")
EVALUATIONS = 100  # at most about this many looks at the held-out rows per fit


@dataclass(frozen=True)
class EpochResult:
    """What one epoch showed; terms are means over its mini-batches, in nats per row."""

    epoch: int
    nelbo: float
    nll: float
    kl: float
    held_out_log_likelihood: float | None


@dataclass
class FitState:
    """All that changes while fitting; together with the configuration it determines the rest."""

    current: Any
    best: Any
    best_score: float = -math.inf
    best_epoch: int = 0
    epoch: int = 0
    step: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])  # of the epoch's losses
    history: list[EpochResult] = field(default_factory=list)


@dataclass(frozen=True)
class Observer:
    """The two ways in which fitting talks to the world."""

    on_epoch: Callable[[EpochResult], None] = lambda result: None
    should_stop: Callable[[], bool] = lambda: False


@dataclass
class Trainer:
    """Minimises a method's loss over the parameters of its state, in place.

    With `last_epoch` it ends after that one, having followed the schedule of all epochs so far.
    Held-out rows choose the best state, or, where they may not, are scored for the report alone.
    """

    method: Method
    rows: Rows
    held_out: Rows | None
    config: TrainingConfig
    score: Callable[[Any, Rows], float]
    state: FitState
    ranks: Ranks = ALONE
    last_epoch: int | None = None
    chooses: bool = True

    def __post_init__(self) -> None:
        self.device = self.rows.inputs.device
        self._attach(self.state)

    def saved(self) -> tuple[dict[str, Tensor], Json]:
        """Both states, the optimiser's slots, and the counters."""
        state = self.state
        tensors: dict[str, Tensor] = {}
        for prefix, one in (("current.", state.current), ("best.", state.best)):
            tensors |= {prefix + name: value for name, value in one.pack().items()}
        for index, slots in self.optimizer.state_dict()["state"].items():
            for name, value in slots.items():
                if isinstance(value, Tensor):
                    tensors[f"optimizer.{index}.{name}"] = value.detach().cpu()
        score = state.best_score if math.isfinite(state.best_score) else None  # JSON: no infinity
        history = [asdict(result) for result in state.history]
        counters = {name: getattr(state, name) for name in _COUNTED}
        return tensors, {**counters, "best_score": score, "history": history}

    def resume(self, tensors: dict[str, Tensor], counters: Json) -> None:
        """Goes on from what `saved` gave."""
        score, history = counters["best_score"], counters["history"]
        state = FitState(
            current=self._state(unprefixed("current.", tensors)),
            best=self._state(unprefixed("best.", tensors)),
            best_score=-math.inf if score is None else score,
            history=[EpochResult(**item) for item in history],
            **{name: counters[name] for name in _COUNTED},
        )
        self._attach(state)
        groups = self.optimizer.state_dict()["param_groups"]
        slots = _slots(unprefixed("optimizer.", tensors))
        self.optimizer.load_state_dict({"state": slots, "param_groups": groups})

    def _state(self, tensors: dict[str, Tensor]) -> State:
        kind: type[State] = type(self.state.current)
        return kind.unpack(tensors, self.method.layout.num_weights).to(self.device)

    def _attach(self, state: FitState) -> None:
        parameters = state.current.parameters()
        for parameter in parameters:
            parameter.requires_grad_()
        self.state, self.optimizer = state, build_optimizer(self.config, parameters)

    def run(self, observer: Observer) -> Any:
        """Runs to the last epoch or until patience ends; returns the best state seen.

        Raises:
            Stopped: between two mini-batches, when the observer asks for it.
            Diverged: when a term of the loss or the gradient is not finite.
        """
        while self.state.epoch < self._end and not self._out_of_patience():
            result = self._run_epoch(observer)
            self.state.history.append(result)
            observer.on_epoch(result)
        return self.state.best

    @property
    def epochs(self) -> int:
        return required(self.config.epochs, "epochs")

    @property
    def _end(self) -> int:
        return self.epochs if self.last_epoch is None else self.last_epoch

    @property
    def batch_size(self) -> int:
        return min(required(self.config.batch_size, "batch_size"), len(self.rows))

    @property
    def warmup_epochs(self) -> int:
        """Until the KL has its full weight the objective is another one: nothing is kept then."""
        return min(self.method.kl.warmup_epochs or 0, self.epochs - 1)

    @property
    def num_batches(self) -> int:
        return -(-len(self.rows) // self.batch_size)

    def _run_epoch(self, observer: Observer) -> EpochResult:
        done = self.state.step % self.num_batches
        order = batches(len(self.rows), self.batch_size, self.config.seed, self.state.epoch)
        for i, index in enumerate(order):
            if i < done:
                continue  # a resumed epoch goes on after its last finished mini-batch
            if observer.should_stop():
                raise Stopped
            loss = self._step(index, i)
            terms = (loss.nelbo.item(), loss.nll.item(), loss.kl.item())
            self.state.sums = [a + b for a, b in zip(self.state.sums, terms, strict=True)]
        count = self.num_batches * self.method.members
        nelbo, nll, kl = (total / count for total in self.state.sums)
        self.state.epoch, self.state.sums = self.state.epoch + 1, [0.0, 0.0, 0.0]
        self.method.collect(self.state.current)
        return EpochResult(self.state.epoch, nelbo, nll, kl, self._keep_best())

    def _step(self, index: Tensor, number: int) -> Loss:
        """One step on the mini-batch of these rows; each rank computes its part of them."""
        state, part = self.state, self.ranks.part(len(index))
        batch = self.rows[index[part.rows].to(self.device)]
        noise = generator(self.config.seed, "step", state.step, device=self.device)
        kl_weight = self._kl_weight(self.method.kl, number)
        self._set_learning_rate()
        loss = self.method.loss(state.current, batch, kl_weight, noise, part)
        parameters = state.current.parameters()
        for parameter in parameters:
            parameter.grad = None
        loss.nelbo.backward()
        terms = (loss.nll, loss.kl, loss.nelbo)
        loss = Loss(*self.ranks.sum_gradients(parameters, terms))
        norm = get_total_norm(p.grad for p in parameters if p.grad is not None)
        check_finite(loss, norm, state.step)
        self._clip(norm.item())
        self.optimizer.step()
        state.step += 1
        return loss

    def _kl_weight(self, config: KLConfig, index: int) -> float:
        ramp = warmup(self.state.step, self.warmup_epochs * self.num_batches)
        weight = kl_weight(
            config,
            batch=index,
            num_batches=self.num_batches,
            num_parameters=self.method.num_parameters,
        )
        return ramp * weight

    def _set_learning_rate(self) -> None:
        rate = required(self.config.learning_rate, "learning_rate")
        if self.config.schedule != "constant":
            done = self.state.step / (self.epochs * self.num_batches)
            rate *= 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def _clip(self, norm: float) -> None:
        """Scales the gradient down to the greatest norm allowed; most steps are below it."""
        limit = self.config.gradient_clip or math.inf
        if norm > limit:
            clip_members(self.state.current.parameters(), self.method.members, limit)

    def _keep_best(self) -> float | None:
        """Scores the held-out rows every so often and keeps a copy of the best state."""
        state, every = self.state, max(1, self.epochs // EVALUATIONS)
        last = state.epoch == self._end
        if last and not self._may_choose:
            state.best, state.best_epoch = state.current.detach(), state.epoch
        if self.held_out is None or (state.epoch % every and not last):
            return None
        score = self.score(state.current, self.held_out)
        if self._may_choose and score > state.best_score and state.epoch >= self.warmup_epochs:
            state.best, state.best_score = state.current.detach(), score
            state.best_epoch = state.epoch
        return score

    def _out_of_patience(self) -> bool:
        patience = self.config.patience or self.epochs
        since = max(self.state.best_epoch, self.warmup_epochs)
        return self._may_choose and self.state.epoch - since >= patience

    @property
    def _may_choose(self) -> bool:
        return self.chooses and self.held_out is not None


def unprefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin so, without that beginning."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _slots(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """The optimiser's tensors by parameter."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    return state


def required(value: T | None, name: str) -> T:
    """A setting that `models.training.recipe.resolve` fills in."""
    if value is None:
        raise ValueError(f"training.{name} is not set; call models.training.recipe.resolve first")
    return value


def build_optimizer(config: TrainingConfig, parameters: list[Tensor]) -> torch.optim.Optimizer:
    """Fused kernels: one pass over the parameters per step."""
    rate = required(config.learning_rate, "learning_rate")
    if config.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=rate, momentum=config.momentum, fused=True)
    return torch.optim.Adam(parameters, lr=rate, fused=True)


def clip_members(parameters: list[Tensor], members: int, limit: float) -> Tensor:
    """Bounds the gradient's norm, each member's by itself; returns that of all before it.

    Members share tensors, and must take the steps that each would take alone.
    """
    gradients = [p.grad.view(members, -1) for p in parameters if p.grad is not None]
    norms = torch.stack([each.norm(dim=1, keepdim=True) for each in gradients]).norm(dim=0)
    for each in gradients:
        each.mul_((limit / norms).clamp_max(1.0))
    return norms.norm()


def check_finite(loss: Loss, gradient_norm: Tensor, step: int) -> None:
    """Stops a diverging run before the step is taken, so that no NaN reaches a weight."""
    terms = {
        "negative log likelihood": loss.nll,
        "KL": loss.kl,
        "gradient norm": gradient_norm,
    }
    for name, value in terms.items():
        if not math.isfinite(value.item()):
            raise Diverged(
                f"training diverged at step {step}: the {name} is {value.item()}. "
                "Lower training.learning_rate, set training.gradient_clip (for example 1.0), "
                "or look for extreme values in the data",
                "/training/learning_rate",
            )
