"""Passes that are recorded once and played again: as CUDA graphs, or by calling the function.

On a GPU a pass over a few rows takes less time than starting its operations. A graph starts all of
them at once. It reads and writes the memory that it was recorded with, whatever that holds.
Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

Tensors = tuple[Tensor, ...]
Pass = Callable[[Tensors], Tensors]

_WARM_UPS = 3  # as `make_graphed_callables`: libraries choose kernels and workspaces in the first


@runtime_checkable
class Tape(Protocol):
    """A recorded pass."""

    @property
    def outputs(self) -> Tensors:
        """Where each `play` writes the results."""
        ...

    @property
    def nbytes(self) -> int:
        """About the memory that it holds, with its inputs and outputs."""
        ...

    def play(self) -> None:
        """Compute the outputs of what the inputs hold now."""
        ...


Record = Callable[[Pass, Tensors], Tape]
"""Records a pass over the inputs, which stay its inputs."""


@dataclass(frozen=True)
class EagerTape:
    """Calls the function again. For devices without graphs, and for tests."""

    run: Pass
    inputs: Tensors
    outputs: Tensors

    @classmethod
    def record(cls, run: Pass, inputs: Tensors) -> "EagerTape":
        return cls(run, inputs, tuple(output.clone() for output in run(inputs)))

    @property
    def nbytes(self) -> int:
        return _num_bytes((*self.inputs, *self.outputs))

    def play(self) -> None:
        for kept, computed in zip(self.outputs, self.run(self.inputs), strict=True):
            kept.copy_(computed)


@dataclass(frozen=True)
class GraphTape:
    """A CUDA graph. It holds `run`, because it reads the weights that `run` does."""

    run: Pass
    inputs: Tensors
    outputs: Tensors
    graph: torch.cuda.CUDAGraph
    nbytes: int

    @classmethod
    def record(cls, run: Pass, inputs: Tensors) -> "GraphTape":
        """Record on a stream of its own, as graphs must be, and after warm-up.

        Other threads may use the device meanwhile (`thread_local`). One graph is recorded at a
        time in a process.
        """
        device = inputs[0].device
        with _recording(), torch.cuda.device(device):
            stream, before = _stream(device), torch.cuda.memory_reserved(device)
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(_WARM_UPS):
                    run(inputs)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                    outputs = run(inputs)
            torch.cuda.current_stream().wait_stream(stream)
            held = torch.cuda.memory_reserved(device) - before
        return cls(run, inputs, outputs, graph, max(held, _num_bytes((*inputs, *outputs))))

    def play(self) -> None:
        self.graph.replay()


def _num_bytes(tensors: Tensors) -> int:
    return sum(tensor.nbytes for tensor in tensors)


@cache
def _recording() -> threading.Lock:
    """The lock of this process: torch allows one recording at a time."""
    return threading.Lock()


@cache
def _stream(device: torch.device) -> "torch.cuda.Stream":
    """One stream for all recordings: the products' libraries keep a workspace for each stream."""
    return torch.cuda.Stream(device)
