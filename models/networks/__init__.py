"""Networks as pure functions of their weights."""

from models.networks.building import build_network
from models.networks.mlp import ACTIVATIONS, MLP, gain_of
from models.networks.network import Inputs, LocallyDrawn, Masks, Network, TensorSlot

__all__ = [
    "ACTIVATIONS",
    "MLP",
    "Inputs",
    "LocallyDrawn",
    "Masks",
    "Network",
    "TensorSlot",
    "build_network",
    "gain_of",
]
