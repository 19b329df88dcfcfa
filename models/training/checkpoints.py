"""Checkpoints of a training, one file per stage, and how often they are written.

A file is put in place by one rename, so that the folder may be copied at any time. The file of a
finished stage holds a run that has nothing left to do.

A checkpoint of a small model takes milliseconds, one of a large model seconds. So the time between
two follows from what the last one took, within bounds on the work that a lost process repeats.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load, save

from models.fitting.distributed import ALONE, Ranks
from models.fitting.loop import Run

log = logging.getLogger(__name__)

_COUNTERS = "counters"  # JSON stored as a tensor, so that one file holds everything

# A job may be continued by a newer version of the service. Raise this with every change of what a
# checkpoint's weights mean: how rows are divided or encoded, or what a run keeps.
CHECKPOINT_FORMAT = 2


@dataclass(frozen=True)
class Checkpoints:
    """The folder of one training. The first of several ranks reads and writes it for all.

    `prefix` distinguishes the stages of trainings that share the folder.
    """

    directory: Path
    ranks: Ranks = ALONE
    prefix: str = ""

    def save(self, stage: str, run: Run) -> None:
        """Replace the stage's checkpoint. After a crash the old or the new one is complete.

        If the disk is full, it logs a warning and keeps the old one: stopping the run would lose
        more.

        Raises:
            ValueError: for counters of NaN and infinity, which JSON cannot hold.
        """
        if not self.ranks.leads:
            return
        tensors, counters = run.saved()
        whole = {name: value.clone().contiguous() for name, value in tensors.items()}
        content = {"format": CHECKPOINT_FORMAT, "counters": counters}
        encoded = bytearray(json.dumps(content, allow_nan=False).encode())
        whole[_COUNTERS] = torch.frombuffer(encoded, dtype=torch.uint8)
        final = self._file(stage)
        fresh = final.with_name(f"{final.name}.new")
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            fresh.write_bytes(save(whole))
            fresh.replace(final)
        except OSError as error:
            log.warning("checkpoint not written: %s", error.strerror)
            with suppress(OSError):
                fresh.unlink(missing_ok=True)

    def restore(self, stage: str, run: Run) -> None:
        """Load the saved state into a new run, if there is one of this format."""
        path = self._file(stage)
        saved = self.ranks.share(lambda: path.read_bytes() if path.is_file() else b"")
        if saved:
            tensors = load(saved)
            content = json.loads(tensors.pop(_COUNTERS).numpy().tobytes())
            if content.get("format") == CHECKPOINT_FORMAT:
                run.resume(tensors, content["counters"])

    def _file(self, stage: str) -> Path:
        return self.directory / f"{self.prefix}{stage}.safetensors"


SHORTEST_SECONDS = 5.0  # less work is not worth a checkpoint
COST_SHARE = 0.01  # of the time of a training is for checkpoints, unless this were too seldom:
REPEATED_SECONDS, REPEATED_SHARE = 8.0, 0.04  # the most work between two, whichever is more
MOST_COST_SHARE = 0.1  # however much would be repeated
LONGEST_SECONDS = 300.0


def interval(cost_seconds: float, elapsed_seconds: float, longest_seconds: float) -> float:
    """Seconds from the end of a checkpoint to the next one.

    With the time of a mini-batch and of the checkpoint itself, a lost process repeats at most 10 s
    or 5 % of its work, whichever is more, if a checkpoint takes less than 0.8 s.

    Args:
        cost_seconds: what the last one took, written and uploaded.
        elapsed_seconds: since the training began.
        longest_seconds: the upper bound, whatever the others say.
    """
    cheap = cost_seconds / COST_SHARE
    repeated = max(REPEATED_SECONDS, REPEATED_SHARE * elapsed_seconds)
    bounded = max(min(cheap, repeated), SHORTEST_SECONDS, cost_seconds / MOST_COST_SHARE)
    return min(bounded, longest_seconds)


class CheckpointSpacing:
    """When the next checkpoint of a training is due; the first one soon after its start."""

    def __init__(self, longest_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest, self._clock = longest_seconds, clock
        self._begun = self._last = clock()
        self._interval = interval(0.0, 0.0, longest_seconds)

    def is_due(self) -> bool:
        return self._clock() - self._last >= self._interval

    @contextmanager
    def measured(self) -> Iterator[None]:
        """A block that makes a checkpoint, whose time decides when the next one is due."""
        started = self._clock()
        yield
        self._last = self._clock()
        cost, elapsed = self._last - started, self._last - self._begun
        self._interval = interval(cost, elapsed, self._longest)

    def postpone(self) -> None:
        """Count from now: a checkpoint was made for another reason."""
        self._last = self._clock()
