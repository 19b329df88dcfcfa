"""All methods of inference. A new one is a class in a file of its own, and a line here."""

from models.config import MethodConfig
from models.inference.bbb import BayesByBackprop
from models.inference.langevin import SGLD, CyclicalSGLD
from models.inference.laplace import Laplace
from models.inference.mc_dropout import MCDropout
from models.inference.method import Method, State
from models.inference.metropolis import Metropolis
from models.inference.point import MAP, MLE, Ensemble
from models.inference.precision import EXACT, Products
from models.inference.swag import SWAG
from models.likelihoods import Likelihood
from models.networks import Network

METHODS: dict[type, type[Method]] = {
    method.settings: method
    for method in (
        BayesByBackprop,
        MAP,
        MLE,
        Ensemble,
        MCDropout,
        SWAG,
        Laplace,
        SGLD,
        CyclicalSGLD,
        Metropolis,
    )
}


def method_of(config: MethodConfig) -> type[Method]:
    """The method of a configuration.

    Raises:
        TypeError: if none is registered.
    """
    if type(config) not in METHODS:
        raise TypeError(f"no method is registered for {type(config).__name__}")
    return METHODS[type(config)]


def build_method(
    config: MethodConfig,
    network: Network,
    likelihood: Likelihood,
    num_data: int,
    products: Products = EXACT,
) -> Method:
    """Bind the configured method; `products` is the format of its products in training."""
    return method_of(config)(network, likelihood, config, num_data, products)


def states() -> dict[str, type[State]]:
    """The states that an artifact may hold, by their names there."""
    return {method.stored.kind: method.stored for method in METHODS.values()}
