"""torchbnn as in its demos: a loop of forward passes of `BayesLinear` layers."""

import torchbnn

from benchmarks.peers.child import Predict, loop, network, serve


def build(widths: list[int]) -> Predict:
    model = network(widths, lambda inputs, outputs: torchbnn.BayesLinear(0, 0.1, inputs, outputs))
    return lambda x, num_samples: loop(model, x, num_samples)


if __name__ == "__main__":
    serve("torchbnn", build)
