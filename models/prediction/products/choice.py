"""The fastest products for a layer on this machine, by a measurement of some milliseconds.

A version's training says whether its answers bear bfloat16 (`rounding`). Whether it is used follows
from the machine: where a layer takes it, it takes it for any number of rows, so that a row's answer
does not depend on the rows around it.
"""

import time
from collections.abc import Callable, Mapping
from functools import cache

import torch
from torch import Tensor

from models.prediction.local import Gaussian, Layer, LayerMoments
from models.prediction.products.kernels import Bfloat16Layer, OneDnnLayer, SparseLayer
from models.prediction.threads import threads_for

_MAX_DENSITY = 0.25  # share of weights that are not 0; above it no sparse product was ever faster
_MIN_SPARSE = 4096  # weights; a smaller product is all overhead
_MIN_DENSE = 2**9  # weights; a smaller product takes less than what is around it
_LARGE = 2**16  # weights: 256 × 256, in whose products a network spends most of its time
ROUNDED = 2**14  # weights: 128 × 128; compiled kernels, which do not round, take smaller ones
# Rows of a measurement: fewer than a row with the default number of samples for a large layer,
# which gives the same ratios as more, and so many for a small one that the call does not decide.
_ROWS, _MAX_ROWS, _PRODUCTS = 64, 4096, 2**23
_REPETITIONS = 3
# Another kernel must take less than this share of the time, so that a loaded machine does not
# decide. Sparse products are 1.5 times as fast and more, or not faster; wider vectors twice as
# fast; bfloat16 is twice as fast as those with units for it, slower without.
_GAIN = {SparseLayer: 0.8, OneDnnLayer: 0.8, Bfloat16Layer: 0.75}

Kernels = type[SparseLayer] | type[OneDnnLayer] | type[Bfloat16Layer]
_Key = tuple[tuple[int, ...], tuple[Kernels, ...], str]


class Choice:
    """Chooses kernels for the layers of a version. Layers of equal shape share a measurement.

    Dense layers share it with those of all versions in the process. What sparse weights take
    depends on how many there are.

    Args:
        rounded: the least weights of a layer that bears bfloat16 (`Variant.rounded`); None: no
            layer does.
    """

    def __init__(self, *, rounded: int | None) -> None:
        self._rounded = rounded
        self._of_version: dict[_Key, Kernels | None] = {}

    def fastest(self, layer: Layer, *, reads_inputs: bool = False) -> Layer:
        """The layer itself, or a kernel for it that is clearly faster on this machine.

        Args:
            reads_inputs: whether it is the first, whose products all samples share: it stays in
                float32, because the inputs' digits matter.
        """
        if not isinstance(layer, LayerMoments):
            return layer
        kinds = self._candidates(layer, reads_inputs=reads_inputs)
        if not kinds:
            return layer
        known = self._of_version if SparseLayer in kinds else _of_process()
        key = (tuple(layer.loc.shape), tuple(kinds), str(layer.loc.device))
        if key not in known:
            known[key] = _measure(layer, kinds)
        kind = known[key]
        return layer if kind is None else kind.of(layer)

    def _candidates(self, layer: LayerMoments, *, reads_inputs: bool) -> list[Kernels]:
        kinds: list[Kernels] = []
        if is_sparse(layer) and not reads_inputs:
            kinds.append(SparseLayer)
        weights = layer.loc.numel()
        if weights >= _MIN_DENSE and has_onednn(layer.weight):
            kinds.append(OneDnnLayer)
        if self._rounded is not None and weights >= self._rounded and not reads_inputs:
            kinds.append(Bfloat16Layer)
        return kinds


@cache
def _of_process() -> dict[_Key, Kernels | None]:
    """What this process has measured of dense layers."""
    return {}


def is_large(layer: LayerMoments) -> bool:
    """Whether the network spends most of its time in products like the layer's."""
    return layer.loc.numel() >= _LARGE


def is_sparse(layer: LayerMoments) -> bool:
    """Whether sparse products can be faster."""
    if layer.loc.device.type != "cpu" or layer.loc.numel() < _MIN_SPARSE:
        return False
    return float((layer.variance != 0).float().mean()) <= _MAX_DENSITY


def has_onednn(like: Tensor) -> bool:
    """Whether torch was built with oneDNN, and the numbers are on the CPU."""
    return like.device.type == "cpu" and torch.backends.mkldnn.is_available()


def _measure(layer: LayerMoments, kinds: list[Kernels]) -> Kernels | None:
    """The kind that is fastest by its own margin; None for the layer as it is."""
    runs: dict[Kernels | None, Callable[[Tensor], Gaussian]] = {None: layer}
    runs |= {kind: kind.of(layer) for kind in kinds}
    rows = min(_MAX_ROWS, max(_ROWS, _PRODUCTS // layer.loc.numel()))
    seconds = _shortest(runs, layer.loc.new_ones(1, rows, layer.loc.shape[1]))
    best: Kernels | None = None
    for kind in kinds:
        if seconds[kind] < _GAIN[kind] * seconds[best]:
            best = kind
    return best


def _shortest(
    runs: Mapping[Kernels | None, Callable[[Tensor], Gaussian]], x: Tensor
) -> dict[Kernels | None, float]:
    """The shortest time of each in turns on one thread: what other work does cannot shorten it."""
    times: dict[Kernels | None, list[float]] = {kind: [] for kind in runs}
    with threads_for(0):
        for _ in range(1 + _REPETITIONS):
            for kind, run in runs.items():
                _synchronize(x)
                started = time.perf_counter()
                run(x)
                _synchronize(x)
                times[kind].append(time.perf_counter() - started)
    return {kind: min(found) for kind, found in times.items()}


def _synchronize(x: Tensor) -> None:
    if x.device.type == "cuda":
        torch.cuda.synchronize(x.device)
