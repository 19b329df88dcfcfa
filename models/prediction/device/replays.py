"""Recorded passes by what was asked, for any number of rows up to the next power of two.

A pass is recorded when it is asked for the second time: single unusual requests cost nothing, and a
service needs few sizes. Its inputs are the rows, with zeros up to the power of two, and the noise,
which follows from the seed on the processor as ever (`models.prediction.noise`). No graph draws
random numbers: so equal seeds give equal answers on all devices, and no generator is registered.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum, auto

import torch
from torch import Tensor

from models.prediction.device.tapes import GraphTape, Pass, Record, Tape, Tensors

_MAX_KEYS = 256  # of passes that are remembered, most of them without a tape


class _State(Enum):
    """What is known of a pass without a tape: asked for once, or not to be recorded."""

    SEEN = auto()
    REFUSED = auto()


@dataclass(frozen=True)
class _Slot:
    """A tape with its inputs."""

    tape: Tape
    rows: Tensor
    noise: Tensors

    def play(self, x: Tensor, noise: Tensors) -> Tensors:
        """Outputs of these rows. Nothing of another request is left in the inputs."""
        self.rows[: len(x)].copy_(x)
        self.rows[len(x) :].zero_()
        for kept, new in zip(self.noise, noise, strict=True):
            kept.copy_(new)
        self.tape.play()
        return tuple(output[:, : len(x)].clone() for output in self.tape.outputs)


class Replays:
    """Recorded passes of a model, up to `max_bytes`; the least recently used are dropped.

    Any number of threads may use it, one at a time: a tape's memory is that of one request. On a
    GPU they share a stream, so that the next request's copies wait for the last one's.

    Args:
        record: `GraphTape.record`, or `EagerTape.record`.
    """

    def __init__(self, record: Record, max_bytes: int) -> None:
        self._record, self._max_bytes = record, max_bytes
        self._known: OrderedDict[Hashable, _Slot | _State] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def on(cls, device: torch.device, max_bytes: int) -> "Replays | None":
        """Those of a GPU; None for a processor, which starts operations in less than they take."""
        return cls(GraphTape.record, max_bytes) if device.type == "cuda" else None

    @property
    def num_recorded(self) -> int:
        """Number of tapes."""
        return sum(isinstance(known, _Slot) for known in self._known.values())

    @property
    def num_refused(self) -> int:
        """Number of passes that could not be recorded, and always run as they are."""
        return sum(known is _State.REFUSED for known in self._known.values())

    def __call__(self, key: Hashable, run: Pass, x: Tensor, noise: Tensors) -> Tensors:
        """Return `run((x, *noise))`, whose results have the rows on their second axis.

        Args:
            key: whatever the pass depends on beside the values and the number of rows.
            run: a function of the inputs that keeps no other state.
        """
        with self._lock:
            slot = self._slot((key, _padded(len(x))), run, x, noise)
            if isinstance(slot, _Slot):
                return slot.play(x, noise)
        return run((x, *noise))

    def clear(self) -> None:
        """Give back the memory of all tapes."""
        with self._lock:
            self._known.clear()

    def _slot(self, key: Hashable, run: Pass, x: Tensor, noise: Tensors) -> _Slot | _State:
        found = self._known.get(key)
        if found is None:
            found = _State.SEEN
        elif found is _State.SEEN:
            found = self._recorded(run, x, noise)
        self._known[key] = found
        self._known.move_to_end(key)
        while self._num_bytes() > self._max_bytes or len(self._known) > _MAX_KEYS:
            self._known.popitem(last=False)
        return found

    def _recorded(self, run: Pass, x: Tensor, noise: Tensors) -> _Slot | _State:
        """A new slot; none for what a device cannot record, or what is too large to keep."""
        rows = x.new_zeros(_padded(len(x)), *x.shape[1:])
        rows[: len(x)].copy_(x)
        kept = tuple(block.clone() for block in noise)
        try:
            tape = self._record(run, (rows, *kept))
        except (
            RuntimeError
        ):  # torch's errors of the device, memory included: the pass runs as it is
            return _State.REFUSED
        return _Slot(tape, rows, kept) if tape.nbytes <= self._max_bytes else _State.REFUSED

    def _num_bytes(self) -> int:
        slots = (known for known in self._known.values() if isinstance(known, _Slot))
        return sum(slot.tape.nbytes for slot in slots)


def _padded(rows: int) -> int:
    """The next power of two.

    >>> [_padded(rows) for rows in (1, 2, 3, 64, 65)]
    [1, 2, 4, 64, 128]
    """
    return 1 << (rows - 1).bit_length()
