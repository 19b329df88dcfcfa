"""Networks as pure functions of their weights."""

from models.config import ConvolutionalConfig, NetworkConfig, RecurrentConfig
from models.networks.convolutional import ConvolutionalNetwork
from models.networks.mlp import ACTIVATIONS as ACTIVATIONS
from models.networks.mlp import MLP as MLP
from models.networks.mlp import SLOPES as SLOPES
from models.networks.network import Inputs as Inputs
from models.networks.network import LocallyDrawn as LocallyDrawn
from models.networks.network import Masks as Masks
from models.networks.network import Network as Network
from models.networks.network import TensorSlot as TensorSlot
from models.networks.sequences import SequenceNetwork
from models.networks.stack import Members as Members
from models.networks.stack import Stack as Stack
from models.networks.stack import num_inner_weights as num_inner_weights
from models.networks.stack import point_shape as point_shape


def build_network(
    config: NetworkConfig, inputs: Inputs, num_outputs: int, *, of_noise: int = 0
) -> Network:
    """Build the network that a configuration describes.

    Args:
        of_noise: how many of the outputs, the last ones, describe the noise.

    Raises:
        InvalidData: if the inputs have no tensor of a shape that this kind reads.
    """
    match config:
        case ConvolutionalConfig():
            return ConvolutionalNetwork.build(config, inputs, num_outputs)
        case RecurrentConfig():
            return SequenceNetwork.build(config, inputs, num_outputs)
        case _ if config.parts:
            return Stack.build(config, inputs, num_outputs, of_noise)
    return MLP.build(config, inputs.width, num_outputs)
