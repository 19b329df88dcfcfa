"""Builds the configured method of inference."""

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
from models.inference.sharpening import Sharpened
from models.likelihoods import Likelihood
from models.networks import Network


def build_method(
    config: MethodConfig, network: Network, likelihood: Likelihood, num_data: int
) -> Method:
    """Build the method that is fitted first, by gradients of a loss.

    Raises:
        InvalidData: if a Laplace approximation cannot follow it.
    """
    match config:
        case BBBConfig():
            kind = Sharpened if config.sharpening else BayesByBackprop
            return kind.build(network, likelihood, config, num_data)
        case DropoutConfig():
            return MCDropout.build(network, likelihood, config, num_data)
        case LaplaceConfig():
            check_size(config, network)
    return PointEstimates.build(network, likelihood, config, num_data)


def build_kernel(config: ChainConfig) -> Kernel:
    """Build the transition kernel of Markov chains."""
    match config:
        case SGLDConfig():
            return SGLD(config)
        case CyclicalSGLDConfig():
            return CyclicalSGLD(config)
    return Metropolis(config)
