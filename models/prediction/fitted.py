"""What predicting needs of a posterior, made once: it costs more than a small request."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from models.inference.bbb import BBBState
from models.networks import MLP
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.compaction import Live, live_units, select
from models.prediction.kernels import fastest
from models.prediction.local import LayerMoments, LocalNetwork
from models.prediction.noise import Noise

_WORTH_SELECTING = 0.7  # of the operations; picking inputs and noise for the rest takes time too


@dataclass(frozen=True)
class Fitted:
    """A posterior ready for prediction: of a pruned one only the units that still matter."""

    posterior: MeanFieldNormal
    point: dict[str, Tensor]
    local: LocalNetwork
    live: Live | None

    @classmethod
    @torch.inference_mode()
    def of(cls, network: MLP, state: BBBState) -> "Fitted":
        posterior = state.posterior
        loc, variance = map(network.layout.unflatten, posterior.distribution().moments())
        layers = tuple(LayerMoments.of(layer, loc, variance) for layer in network.layers)
        whole = LocalNetwork(layers, network.activation)
        if posterior.mask is None:
            return cls(posterior, state.point, whole, None)
        live = live_units(network, posterior.mask)
        pairs = zip(layers, live, live[1:], strict=False)
        smaller = replace(whole, layers=tuple(layer.select(*ends) for layer, *ends in pairs))
        if smaller.operations > _WORTH_SELECTING * whole.operations:
            return cls(posterior, state.point, whole, None)
        return cls(posterior, state.point, smaller, live)

    @torch.inference_mode()
    def tuned(self, *, bfloat16: bool) -> "Fitted":
        """With the kernels that are fastest on this machine.

        The first layer stays as it is: it sees the inputs, and all samples share its products.
        """
        first, *later = self.local.layers
        layers = (first, *(fastest(layer, bfloat16=bfloat16) for layer in later))
        return replace(self, local=replace(self.local, layers=layers))

    @property
    def operations(self) -> int:
        """Of one sample of one row."""
        return self.local.operations

    def inputs(self, x: Tensor) -> Tensor:
        """The inputs that the network reads."""
        return x if self.live is None or self.live[0] is None else x[:, self.live[0]]

    def noise(self, noise: Noise) -> Noise:
        """The noise of the units that are left."""
        return noise if self.live is None else select(noise, self.live)
