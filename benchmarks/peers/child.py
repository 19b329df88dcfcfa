"""The part common to all libraries: it reads orders from standard input, one JSON line each.

Order   {"network": "784-1200-1200-10", "rows": 1, "samples": 100, "calls": 5}
Answer  {"milliseconds": [12.1, ...]}     the first line of all: {"ready": {"torch": "2.13.0", ...}}

The child ends when its standard input closes, that is with its parent. It needs only torch, the one
package that all libraries' environments have.
"""

import itertools
import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import version
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

Predict = Callable[[Tensor, int], object]
"""Rows [B, inputs] and a number of samples S → moments of the S predictions."""


def serve(distribution: str, build: Callable[[list[int]], Predict]) -> None:
    """Answer orders until standard input closes; `build` gets the widths of a network."""
    channel = _take_standard_output()
    torch.set_num_threads(int(sys.argv[1]))
    torch.manual_seed(0)

    @cache
    def predictor(name: str) -> Predict:
        return build([int(width) for width in name.split("-")])

    _send(channel, {"ready": {distribution: version(distribution), "torch": torch.__version__}})
    for line in sys.stdin:
        order = json.loads(line)
        predict = predictor(order["network"])
        x = torch.randn(order["rows"], int(order["network"].split("-")[0]))
        _send(channel, {"milliseconds": [_time(predict, x, order) for _ in range(order["calls"])]})


def network(widths: Iterable[int], linear: Callable[[int, int], nn.Module]) -> nn.Sequential:
    """A multilayer perceptron with ReLU, in evaluation mode."""
    sizes = list(widths)
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval()


@torch.no_grad()
def loop(forward: nn.Module, x: Tensor, num_samples: int) -> tuple[Tensor, ...]:
    """Stack one forward pass per weight draw, as the libraries document it."""
    return moments(torch.stack([forward(x) for _ in range(num_samples)]))


def moments(outputs: Tensor) -> tuple[Tensor, ...]:
    """Of outputs [S, B, K]: mean and variance of class probabilities; for two outputs (mean and
    log variance) the mean, epistemic and aleatoric variance."""
    if outputs.shape[-1] > 2:
        probabilities = outputs.softmax(-1)
        return probabilities.mean(0), probabilities.var(0, correction=0)
    mean, log_variance = outputs.unbind(-1)
    return mean.mean(0), mean.var(0, correction=0), log_variance.exp().mean(0)


def _time(predict: Predict, x: Tensor, order: dict[str, Any]) -> float:
    started = perf_counter()
    predict(x, order["samples"])
    return 1000 * (perf_counter() - started)


def _take_standard_output() -> Any:
    """Return the channel for answers; redirect a library's own output to standard error."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return channel


def _send(channel: Any, message: dict[str, Any]) -> None:
    channel.write(json.dumps(message) + "\n")
    channel.flush()
