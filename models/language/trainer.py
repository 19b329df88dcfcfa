"""Truncated backpropagation through time: windows in order, states carried and detached.

Per target token, with N of them in the text and B in a window,

    loss = (1/B) Σ_t −log p(x_t | x_<t, w) + c KL(q‖P)/N + (what the window adds)/B,   w ~ q once

for the window. Windows are of equal size, so that the mean over an epoch of M = N/B windows is the
negative ELBO per token: the KL counts once (Fortunato et al. 2017, arXiv 1704.02798, eq. 3–5).
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from models.config import Json, TrainingConfig
from models.exceptions import Stopped
from models.inference.method import Draw, State, WindowMethod
from models.inference.objectives import Loss, kl_weight, negative_elbo, warmup
from models.inference.sharpening import Sharpened
from models.language.corpus import Corpus
from models.networks.recurrent import LanguageModel, States
from models.randomness import generator
from models.training.trainer import (
    EpochResult,
    FitState,
    Observer,
    build_optimizer,
    check_finite,
    clip_members,
    required,
    unprefixed,
)

CUT = 0.25  # of the learning rate, by schedule "plateau"
_COUNTED = ("best_epoch", "epoch", "step", "sums", "cuts")


@dataclass
class LanguageFitState(FitState):
    """And how often the rate was cut, and where the streams stand in the middle of an epoch."""

    cuts: int = 0
    carried: States | None = None


@dataclass
class WindowTrainer:
    """Fits a method to a text; in step with `Trainer`, it can be stopped between two windows."""

    network: LanguageModel
    method: WindowMethod
    corpus: Corpus  # of whole windows
    config: TrainingConfig
    steps: int
    score: Callable[[Any], float] | None  # of a state, on held-out lines; higher is better
    state: LanguageFitState
    _optimizer: torch.optim.Optimizer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._attach(self.state)

    @property
    def epochs(self) -> int:
        return required(self.config.epochs, "epochs")

    @property
    def num_windows(self) -> int:
        return -(-self.corpus.num_steps // self.steps)

    @property
    def warmup_epochs(self) -> int:
        """Until the KL has its full weight the objective is another one: nothing is kept then."""
        return min(self.method.kl.warmup_epochs or 0, self.epochs - 1)

    def run(self, observer: Observer) -> Any:
        """Runs to the last epoch or until patience ends; returns the best state seen.

        Raises:
            Stopped: between two windows, when the observer asks for it.
            Diverged: when a term of the loss or the gradient is not finite.
        """
        while self.state.epoch < self.epochs and not self._out_of_patience():
            result = self._run_epoch(observer)
            self.state.history.append(result)
            observer.on_epoch(result)
        return self.state.best

    def saved(self) -> tuple[dict[str, Tensor], Json]:
        """Both states, the optimiser's slots, the streams' states, and the counters."""
        state = self.state
        tensors = {f"current.{k}": v for k, v in state.current.pack().items()}
        tensors |= {f"best.{k}": v for k, v in state.best.pack().items()}
        for i, layer in enumerate(state.carried or ()):
            tensors |= {f"carried.{i}.{j}": part.cpu() for j, part in enumerate(layer)}
        for i, slots in self._optimizer.state_dict()["state"].items():
            filled = {k: v for k, v in slots.items() if isinstance(v, Tensor)}
            tensors |= {f"optimizer.{i}.{name}": value.cpu() for name, value in filled.items()}
        score = state.best_score if math.isfinite(state.best_score) else None  # JSON: no infinity
        counters = {name: getattr(state, name) for name in _COUNTED}
        history = [asdict(result) for result in state.history]
        return tensors, {**counters, "best_score": score, "history": history}

    def resume(self, tensors: dict[str, Tensor], counters: Json) -> None:
        """Goes on from what `saved` gave."""
        score = counters["best_score"]
        carried = _nested(unprefixed("carried.", tensors))
        device = self.corpus.streams.device
        state = LanguageFitState(
            current=self._unpacked(unprefixed("current.", tensors)),
            best=self._unpacked(unprefixed("best.", tensors)),
            best_score=-math.inf if score is None else score,
            history=[EpochResult(**item) for item in counters["history"]],
            carried=tuple(
                tuple(part.to(device) for part in layer.values()) for layer in carried.values()
            )
            or None,
            **{name: counters[name] for name in _COUNTED},
        )
        self._attach(state)
        groups = self._optimizer.state_dict()["param_groups"]
        slots = _nested(unprefixed("optimizer.", tensors))
        self._optimizer.load_state_dict({"state": slots, "param_groups": groups})

    def _unpacked(self, tensors: dict[str, Tensor]) -> State:
        kind: type[State] = type(self.state.current)
        num_weights = self.method.layout.num_weights
        return kind.unpack(tensors, num_weights).to(self.corpus.streams.device)

    def _attach(self, state: LanguageFitState) -> None:
        parameters = state.current.parameters()
        for parameter in parameters:
            parameter.requires_grad_()
        self.state, self._optimizer = state, build_optimizer(self.config, parameters)

    def _run_epoch(self, observer: Observer) -> EpochResult:
        state, done = self.state, self.state.step % self.num_windows
        for number in range(done, self.num_windows):
            if observer.should_stop():
                raise Stopped
            loss = self._step(number)
            terms = (loss.nelbo.item(), loss.nll.item(), loss.kl.item())
            state.sums = [a + b for a, b in zip(state.sums, terms, strict=True)]
        count = self.num_windows * self.method.members
        nelbo, nll, kl = (total / count for total in state.sums)
        state.epoch, state.sums, state.carried = state.epoch + 1, [0.0, 0.0, 0.0], None
        return EpochResult(state.epoch, nelbo, nll, kl, self._keep_best())

    def _step(self, number: int) -> Loss:
        state = self.state
        tokens, targets = self.corpus.window(number * self.steps, self.steps)
        noise = generator(self.config.seed, "step", state.step, device=tokens.device)
        self._set_learning_rate()
        draw = self.method.draw(state.current, len(tokens), noise)
        if isinstance(self.method, Sharpened):

            def loss_of(trial: Draw) -> Tensor:
                return self._nll(trial, tokens, targets)[0].mean()

            draw = self.method.sharpen(state.current, draw, loss_of, noise)
        nll, carried = self._nll(draw, tokens, targets)
        weight = self._kl_weight(number)
        loss = window_loss(nll, draw, self.corpus.num_targets, weight)
        self._optimizer.zero_grad(set_to_none=True)
        loss.nelbo.backward()
        limit = self.config.gradient_clip or math.inf
        norm = clip_members(state.current.parameters(), self.method.members, limit)
        check_finite(loss, norm, state.step)
        self._optimizer.step()
        state.carried = tuple(tuple(part.detach() for part in layer) for layer in carried)
        state.step += 1
        return loss

    def _nll(
        self,
        draw: Draw,
        tokens: Int[Tensor, "streams steps"],
        targets: Int[Tensor, "streams steps"],
    ) -> tuple[Float[Tensor, "tokens"], States]:
        """−log p of each target, added over the members that are fitted side by side."""
        logits, carried = self.network.advance(draw.weights, tokens, self.state.carried, draw.masks)
        flat = logits.flatten(0, -2)
        members = flat.shape[0] // targets.numel()
        repeated = targets.flatten().repeat(members)
        nll = cross_entropy(flat, repeated, reduction="none")
        return nll.view(members, -1).sum(0), carried

    def _kl_weight(self, number: int) -> float:
        weight = kl_weight(
            self.method.kl,
            batch=number,
            num_batches=self.num_windows,
            num_parameters=self.method.num_parameters,
        )
        return weight * warmup(self.state.step, self.warmup_epochs * self.num_windows)

    def _set_learning_rate(self) -> None:
        rate = required(self.config.learning_rate, "learning_rate") * CUT**self.state.cuts
        if self.config.schedule == "cosine":
            done = self.state.step / (self.epochs * self.num_windows)
            rate *= 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
        for group in self._optimizer.param_groups:
            group["lr"] = rate

    def _keep_best(self) -> float | None:
        """Scores the held-out lines after each epoch and keeps a copy of the best state."""
        state = self.state
        if self.score is None:
            if state.epoch == self.epochs:
                state.best, state.best_epoch = state.current.detach(), state.epoch
            return None
        score = self.score(state.current)
        if score > state.best_score and state.epoch >= self.warmup_epochs:
            state.best, state.best_score = state.current.detach(), score
            state.best_epoch = state.epoch
        elif self.config.schedule == "plateau" and state.best_epoch:
            state.current, state.cuts = state.best.detach(), state.cuts + 1
            self._attach(state)
        return score

    def _out_of_patience(self) -> bool:
        patience = self.config.patience or self.epochs
        since = max(self.state.best_epoch, self.warmup_epochs)
        return self.score is not None and self.state.epoch - since >= patience


def window_loss(
    nll: Float[Tensor, "tokens"], draw: Draw, num_targets: int, kl_weight: float
) -> Loss:
    """The negative ELBO per token, estimated from one window."""
    loss = negative_elbo(nll, draw.penalty, num_targets, kl_weight)
    if draw.local is None:
        return loss
    local = draw.local / len(nll)
    return Loss(loss.nll, loss.kl, loss.nelbo + local)


def _nested(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """`0.h` as [0]["h"], in order of the numbers."""
    parts: dict[int, dict[str, Tensor]] = {}
    for key in sorted(tensors):
        index, name = key.split(".", 1)
        parts.setdefault(int(index), {})[name] = tensors[key]
    return dict(sorted(parts.items()))
