"""bayesian-torch as in its README: `dnn_to_bnn`, then a loop of Monte-Carlo forward passes."""

import sys

from bayesian_torch.models.dnn_to_bnn import dnn_to_bnn
from torch import nn

from benchmarks.peers.child import Predict, loop, network, serve


def build(widths: list[int]) -> Predict:
    model = network(widths, nn.Linear)
    parameters = {
        "prior_mu": 0.0,
        "prior_sigma": 1.0,
        "posterior_mu_init": 0.0,
        "posterior_rho_init": -3.0,
        "type": sys.argv[2],  # Reparameterization or Flipout
        "moped_enable": False,
        "moped_delta": 0.5,
    }
    dnn_to_bnn(model, parameters)
    model.eval()
    return lambda x, num_samples: loop(model, x, num_samples)


if __name__ == "__main__":
    serve("bayesian-torch", build)
