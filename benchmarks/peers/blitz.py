"""blitz as in its README: stacked forward passes of `BayesianLinear` layers."""

from blitz.modules import BayesianLinear

from benchmarks.peers.child import Predict, loop, network, serve


def build(widths: list[int]) -> Predict:
    model = network(widths, BayesianLinear)
    return lambda x, num_samples: loop(model, x, num_samples)


if __name__ == "__main__":
    serve("blitz-bayesian-pytorch", build)
