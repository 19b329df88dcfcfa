"""Builds the configured method of inference."""

from dataclasses import replace

from models.config import (
    BBBConfig,
    ChainConfig,
    CyclicalSGLDConfig,
    DropoutConfig,
    LaplaceConfig,
    MethodConfig,
    SGLDConfig,
)
from models.inference.bbb import BayesByBackprop
from models.inference.chains import Kernel
from models.inference.langevin import SGLD, CyclicalSGLD
from models.inference.laplace.limits import check_size
from models.inference.mc_dropout import MCDropout
from models.inference.method import Method
from models.inference.metropolis import Metropolis
from models.inference.point import PointEstimates
from models.inference.products import EXACT, Products
from models.likelihoods import Likelihood
from models.networks import Network


def build_method(
    config: MethodConfig,
    network: Network,
    likelihood: Likelihood,
    num_data: int,
    products: Products = EXACT,
) -> Method:
    """Build the method that is fitted first, by gradients of a loss.

    Args:
        products: the format of the products.

    Raises:
        InvalidData: if a Laplace approximation cannot follow it.
    """
    match config:
        case BBBConfig():
            bayesian = BayesByBackprop.build(network, likelihood, config, num_data)
            return replace(bayesian, products=products)
        case DropoutConfig():
            dropout = MCDropout.build(network, likelihood, config, num_data)
            return replace(dropout, products=products)
        case LaplaceConfig():
            check_size(config, network)
    points = PointEstimates.build(network, likelihood, config, num_data)
    return replace(points, products=products)


def build_kernel(config: ChainConfig) -> Kernel:
    """Build the transition kernel of Markov chains."""
    match config:
        case SGLDConfig():
            return SGLD(config)
        case CyclicalSGLDConfig():
            return CyclicalSGLD(config)
    return Metropolis(config)
