"""Checkpoints of a run, so that a resumed run ends where an undisturbed one would.

All randomness is a function of (seed, step): parameters, optimiser state and counters are the
whole state. Each stage of a run has a file, put in place by one rename, so that the folder may be
copied at any time; a finished stage is simply one whose trainer has nothing left to do.
"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save_file
from torch import Tensor

from models.checkpoint import pack, unpack
from models.distributed import ALONE, Ranks
from models.fitting import EpochResult, FitState, Trainer
from models.inference.bbb import BBBState

_COUNTERS = "counters"  # JSON among the tensors: one file is whole or not there
_COUNTED = ("best_epoch", "epoch", "step", "sums")


@dataclass(frozen=True)
class Checkpoints:
    """The folder of one job; of several ranks the first reads and writes it."""

    directory: Path
    ranks: Ranks = ALONE

    def save(self, stage: str, trainer: Trainer) -> None:
        """Replaces the stage's checkpoint; a crash leaves the old or the new one, whole."""
        if not self.ranks.leads:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        final = self._file(stage)
        fresh = final.with_name(f"{final.name}.new")
        save_file(_tensors(trainer) | {_COUNTERS: _to_tensor(_counters(trainer.state))}, fresh)
        fresh.replace(final)

    def restore(self, stage: str, trainer: Trainer) -> None:
        """Puts a saved state, where there is one, into a fresh trainer."""
        saved = self.ranks.share(lambda: self._read(stage))
        if not saved:
            return
        tensors = load(saved)
        data = json.loads(tensors.pop(_COUNTERS).numpy().tobytes())
        best_score = data.pop("best_score")
        state = FitState(
            current=_state("current.", tensors, trainer),
            best=_state("best.", tensors, trainer),
            best_score=-math.inf if best_score is None else best_score,
            history=[EpochResult(**item) for item in data.pop("history")],
            **data,
        )
        trainer.restore(state, _optimizer_state(_unprefixed("optimizer.", tensors)))

    def _read(self, stage: str) -> bytes:
        """The stage's checkpoint; empty where there is none."""
        path = self._file(stage)
        return path.read_bytes() if path.is_file() else b""

    def _file(self, stage: str) -> Path:
        return self.directory / f"{stage}.safetensors"


def _tensors(trainer: Trainer) -> dict[str, Tensor]:
    states = {"current.": trainer.state.current, "best.": trainer.state.best}
    tensors = {
        prefix + name: value.clone().contiguous()
        for prefix, state in states.items()
        for name, value in pack(state).items()
    }
    for index, slots in trainer.optimizer.state_dict()["state"].items():
        for name, value in slots.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{index}.{name}"] = value.detach().cpu().clone()
    return tensors


def _counters(state: FitState) -> dict[str, Any]:
    finite = math.isfinite(state.best_score)  # JSON has no infinity
    return {
        **{name: getattr(state, name) for name in _COUNTED},
        "best_score": state.best_score if finite else None,
        "history": [asdict(result) for result in state.history],
    }


def _to_tensor(data: dict[str, Any]) -> Tensor:
    """JSON as bytes; without NaN, which would make it unreadable elsewhere."""
    content = json.dumps(data, allow_nan=False).encode()
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def _state(prefix: str, tensors: dict[str, Tensor], trainer: Trainer) -> BBBState:
    num_weights = trainer.method.layout.num_weights
    return unpack(_unprefixed(prefix, tensors), num_weights).to(trainer.device)


def _optimizer_state(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    return state


def _unprefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
