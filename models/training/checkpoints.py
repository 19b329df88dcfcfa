"""Checkpoints of a run, so that a resumed run ends where an undisturbed one would.

All randomness is a function of (seed, step): parameters, optimiser state and counters are the
whole state. Each stage of a run has a file, put in place by one rename, so that the folder may be
copied at any time; a finished stage is simply one whose run has nothing left to do.
"""

import json
import logging
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from safetensors.torch import load, save
from torch import Tensor

from models.config import Json
from models.training.distributed import ALONE, Ranks

log = logging.getLogger(__name__)

_COUNTERS = "counters"  # JSON among the tensors: one file is whole or not there

# A job may outlive the release that began it. To be raised with whatever makes its weights mean
# something else: how rows are divided or encoded, or what a run keeps. Nothing else would tell that
# they were fitted to other inputs. 1, which was not written: before the power transform.
CHECKPOINT_FORMAT = 2


@runtime_checkable
class Resumable(Protocol):
    """A stage's run, which knows what it is made of."""

    def saved(self) -> tuple[dict[str, Tensor], Json]:
        """Tensors and counters, which are all that a resumed run needs."""
        ...

    def resume(self, tensors: dict[str, Tensor], counters: Json) -> None: ...


@dataclass(frozen=True)
class Checkpoints:
    """The folder of one job; of several ranks the first reads and writes it."""

    directory: Path
    ranks: Ranks = ALONE

    def save(self, stage: str, run: Resumable) -> None:
        """Replaces the stage's checkpoint; a crash leaves the old or the new one, whole.

        So does a disk that is full: the run goes on, and would lose more if it were stopped.
        """
        if not self.ranks.leads:
            return
        tensors, counters = run.saved()
        whole = {name: value.clone().contiguous() for name, value in tensors.items()}
        told = {"format": CHECKPOINT_FORMAT, "counters": counters}
        self._replace(self._file(stage), save(whole | {_COUNTERS: _to_tensor(told)}))

    def restore(self, stage: str, run: Resumable) -> None:
        """Puts a saved state, where there is one of this format, into a fresh run."""
        saved = self.ranks.share(lambda: self._read(stage))
        if saved:
            tensors = load(saved)
            told = json.loads(tensors.pop(_COUNTERS).numpy().tobytes())
            if told.get("format") == CHECKPOINT_FORMAT:
                run.resume(tensors, told["counters"])

    def _replace(self, final: Path, content: bytes) -> None:
        fresh = final.with_name(f"{final.name}.new")
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            fresh.write_bytes(content)
            fresh.replace(final)
        except OSError as error:
            log.warning("checkpoint not written: %s", error.strerror)
            with suppress(OSError):
                fresh.unlink(missing_ok=True)

    def _read(self, stage: str) -> bytes:
        """The stage's checkpoint; empty where there is none."""
        path = self._file(stage)
        return path.read_bytes() if path.is_file() else b""

    def _file(self, stage: str) -> Path:
        return self.directory / f"{stage}.safetensors"


def _to_tensor(data: Json) -> Tensor:
    """JSON as bytes; without NaN, which would make it unreadable elsewhere."""
    content = json.dumps(data, allow_nan=False).encode()
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)
