"""The child process of each library. It reads requests from standard input, one JSON line each.

Start     {"ready": {"torch": "2.13.0", ...}}
Request   {"network": "784-1200-1200-10", "rows": 1, "samples": 100, "calls": 5}
Response  {"milliseconds": [12.1, ...]}

The child ends when its standard input closes, so it ends with its parent. It imports only torch,
which all environments have.
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
    """Answer requests until standard input closes.

    Args:
        build: returns the predictor of a network with these widths.
    """
    channel = _take_standard_output()
    torch.set_num_threads(int(sys.argv[1]))
    torch.manual_seed(0)

    @cache
    def predictor(name: str) -> Predict:
        return build([int(width) for width in name.split("-")])

    _send(channel, {"ready": {distribution: version(distribution), "torch": torch.__version__}})
    for line in sys.stdin:
        request = json.loads(line)
        predict = predictor(request["network"])
        x = torch.randn(request["rows"], int(request["network"].split("-")[0]))
        _send(
            channel, {"milliseconds": [_time(predict, x, request) for _ in range(request["calls"])]}
        )


def network(widths: Iterable[int], linear: Callable[[int, int], nn.Module]) -> nn.Sequential:
    """A multilayer perceptron with ReLU, in evaluation mode."""
    sizes = list(widths)
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval()


@torch.no_grad()
def loop(forward: nn.Module, x: Tensor, num_samples: int) -> tuple[Tensor, ...]:
    """Moments of one forward pass per weight draw, as the libraries document it."""
    return moments(torch.stack([forward(x) for _ in range(num_samples)]))


def moments(outputs: Tensor) -> tuple[Tensor, ...]:
    """Moments of outputs [S, B, K] over the samples.

    Mean and variance of class probabilities; for two outputs (mean and log variance) the mean,
    epistemic and aleatoric variance.
    """
    if outputs.shape[-1] > 2:
        probabilities = outputs.softmax(-1)
        return probabilities.mean(0), probabilities.var(0, correction=0)
    mean, log_variance = outputs.unbind(-1)
    return mean.mean(0), mean.var(0, correction=0), log_variance.exp().mean(0)


def _time(predict: Predict, x: Tensor, request: dict[str, Any]) -> float:
    started = perf_counter()
    predict(x, request["samples"])
    return 1000 * (perf_counter() - started)


def _take_standard_output() -> Any:
    """Return a channel for responses. Redirect the library's output to standard error."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return channel


def _send(channel: Any, message: dict[str, Any]) -> None:
    channel.write(json.dumps(message) + "\n")
    channel.flush()
