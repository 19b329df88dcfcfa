"""The network that a configuration names."""

from models.config import ConvolutionalConfig, NetworkConfig, RecurrentConfig
from models.networks.convolutional import ConvolutionalNetwork
from models.networks.mlp import MLP
from models.networks.network import Inputs, Network
from models.networks.recurrent import SequenceNetwork


def build_network(config: NetworkConfig, inputs: Inputs, num_outputs: int) -> Network:
    """
    Raises:
        InvalidData: if the inputs have no tensor of a shape that this kind reads.
    """
    match config:
        case ConvolutionalConfig():
            return ConvolutionalNetwork.build(config, inputs, num_outputs)
        case RecurrentConfig():
            return SequenceNetwork.build(config, inputs, num_outputs)
    return MLP.build(config, inputs.width, num_outputs)
