"""Bayes by Backprop: stochastic gradients of the ELBO of a mean-field Gaussian.

Source: Blundell et al. 2015 (arXiv 1505.05424); local estimator: Kingma et al. 2015 (1506.02557).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.config import BBBConfig, KLConfig
from models.data import Rows
from models.distributed import Part
from models.inference.method import Draw, pack_point, unpack_point
from models.inference.point import DrawsState, initial_weights
from models.layout import Layout
from models.likelihoods import Likelihood
from models.networks import LocallyDrawn, Network
from models.objectives import Loss, negative_elbo
from models.posteriors import DiagonalNormal, MeanFieldNormal, softplus_inverse
from models.priors import Prior, ScaleMixturePrior, build_prior

# Initial scale × √fan-in, as measured on tables of 277 to 927 rows: small enough that the first
# steps see the data through little noise, and it grows where the data say nothing.
_INITIAL_SIGMA = 0.05


@dataclass(frozen=True)
class BBBState:
    """The variational posterior and the likelihood's point parameters."""

    posterior: MeanFieldNormal
    point: dict[str, Tensor]

    @property
    def num_weights(self) -> int:
        return self.posterior.num_weights

    @property
    def num_draws(self) -> int | None:
        return None

    @property
    def num_noise(self) -> int:
        return self.posterior.loc.numel()

    def draws(self, noise: Float[Tensor, "draws noise"]) -> DrawsState:
        """Weight vectors from standard normals; the point parameters are the same for all.

        Without a gradient, and in the noise's own memory: fresh pages cost more than the products.
        """
        q = self.posterior.distribution()
        weights = q.kept(noise.to(q.loc).mul_(q.scale).add_(q.loc))
        point = {name: value.expand(len(noise), 1) for name, value in self.point.items()}
        return DrawsState(weights, point)

    def parameters(self) -> list[Tensor]:
        """The leaves an optimiser moves."""
        return [self.posterior.loc, self.posterior.rho, *self.point.values()]

    def tensors(self) -> list[Tensor]:
        """All that makes the state: the parameters, and what is pruned."""
        mask = self.posterior.mask
        return self.parameters() if mask is None else [*self.parameters(), mask]

    def detach(self) -> "BBBState":
        point = {name: value.detach().clone() for name, value in self.point.items()}
        return BBBState(self.posterior.detach(), point)

    def to(self, device: str | torch.device) -> "BBBState":
        point = {name: value.to(device) for name, value in self.point.items()}
        return BBBState(self.posterior.to(device), point)

    def pack(self) -> dict[str, Tensor]:
        """Of a pruned posterior only what is left, and its mask as bits."""
        q, point = self.posterior, pack_point(self.point)
        if q.mask is None:
            return {**point, "loc": q.loc.detach().cpu(), "rho": q.rho.detach().cpu()}
        bits = np.packbits(q.mask.cpu().numpy())
        kept = {"loc": q.loc[q.mask].detach().cpu(), "rho": q.rho[q.mask].detach().cpu()}
        return {**point, **kept, "mask": torch.from_numpy(bits)}

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "BBBState":
        """A pruned weight gets loc 0 and rho 0; its mask hides both."""
        point = unpack_point(tensors)
        if "mask" not in tensors:
            return cls(MeanFieldNormal(tensors["loc"], tensors["rho"]), point)
        bits = np.unpackbits(tensors["mask"].numpy(), count=num_weights)
        mask = torch.from_numpy(bits.astype(bool))
        parts = [torch.zeros(num_weights).masked_scatter(mask, tensors[k]) for k in ("loc", "rho")]
        return cls(MeanFieldNormal(parts[0], parts[1], mask), point)


@dataclass(frozen=True)
class BayesByBackprop:
    """The method bound to a network, a likelihood and the number of rows it will be fitted to."""

    members: ClassVar[int] = 1

    network: Network
    likelihood: Likelihood
    prior: Prior
    config: BBBConfig
    num_data: int

    @classmethod
    def build(
        cls,
        network: Network,
        likelihood: Likelihood,
        config: BBBConfig,
        num_data: int,
    ) -> "BayesByBackprop":
        separate = bool(likelihood.noise_outputs)
        prior = build_prior(config.prior, network.prior_layout(separate_outputs=separate))
        return cls(network, likelihood, prior, config, num_data)

    @property
    def layout(self) -> Layout:
        return self.network.layout

    @property
    def kl(self) -> KLConfig:
        return self.config.kl

    @property
    def num_parameters(self) -> int:
        """Variational parameters: a loc and a rho for each weight."""
        return 2 * self.layout.num_weights

    def init(self, generator: torch.Generator) -> BBBState:
        """Random means; scales from `initial_sigma`, by default 0.05/√fan-in.

        The noise starts the same for all inputs, and becomes a function of them as data ask for it.
        """
        loc = initial_weights(self.network, self.likelihood, generator)
        tensors = self.layout.unflatten(loc).items()
        rho = {name: torch.full_like(t, self._initial_rho(name)) for name, t in tensors}
        posterior = MeanFieldNormal(loc, self.layout.flatten(rho))
        point = {name: torch.tensor(v) for name, v in self.likelihood.parameters.items()}
        return BBBState(posterior, point)

    def _initial_rho(self, name: str) -> float:
        if self.config.initial_sigma != "auto":
            return softplus_inverse(self.config.initial_sigma)
        return softplus_inverse(_INITIAL_SIGMA / math.sqrt(self.network.fan_in(name)))

    def loss(
        self,
        state: BBBState,
        batch: Rows,
        kl_weight: float,
        generator: torch.Generator,
        part: Part | None = None,
    ) -> Loss:
        """The negative ELBO per row, estimated with one draw.

        With a `part`, `batch` has that part's rows alone: the losses of all parts add up to that of
        the mini-batch.
        """
        part = part or Part.whole(len(batch))
        q = state.posterior.distribution()
        outputs, noise = self._outputs(q, batch.inputs, generator, part)
        nll = -self.likelihood.log_prob(outputs, batch.targets, state.point)
        if self.config.kl.direction == "forward":
            kl = self.prior.forward_kl(q)
        else:
            kl = self.prior.reverse_kl(q, noise)
        return negative_elbo(batch.weigh(nll), kl, self.num_data, kl_weight, part)

    def draw(self, state: BBBState, streams: int, generator: torch.Generator) -> Draw:
        """w ~ q, the same for all streams and steps, and the divergence of q from the prior."""
        q = state.posterior.distribution()
        noise = torch.empty_like(q.loc, requires_grad=False).normal_(generator=generator)
        forward = self.config.kl.direction == "forward"
        kl = self.prior.forward_kl(q) if forward else self.prior.reverse_kl(q, noise)
        return Draw(self.layout.unflatten(q.rsample(noise)), kl)

    def collect(self, state: BBBState) -> None:
        """The last state, or the best, is all."""

    def _outputs(
        self,
        q: DiagonalNormal,
        x: Float[Tensor, "batch inputs"],
        generator: torch.Generator,
        part: Part,
    ) -> tuple[Float[Tensor, "batch outputs"], Float[Tensor, "weights"] | None]:
        """One draw of the outputs, and the weight noise that the KL may need.

        The whole mini-batch's noise is drawn, whatever the part: a row's does not depend on it.
        """
        if self.config.estimator == "weight" or not isinstance(self.network, LocallyDrawn):
            noise = torch.empty_like(q.loc, requires_grad=False).normal_(generator=generator)
            return self.network(self.layout.unflatten(q.rsample(noise)), x), noise
        loc, variance = (self.layout.unflatten(part) for part in q.moments())
        blocks = [
            x.new_empty(part.total, width).normal_(generator=generator)[part.rows]
            for width in self.network.noise_widths()
        ]
        outputs = self.network.local(loc, variance, x, blocks)
        if not isinstance(self.prior, ScaleMixturePrior):
            return outputs, None
        return outputs, torch.empty_like(q.loc, requires_grad=False).normal_(generator=generator)
