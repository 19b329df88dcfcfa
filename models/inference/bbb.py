"""Bayes by Backprop: stochastic gradients of the ELBO of a mean-field Gaussian.

Source: Blundell et al. 2015 (arXiv 1505.05424); local estimator: Kingma et al. 2015 (1506.02557).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.config import BBBConfig, KLConfig
from models.features.rows import Rows
from models.inference.method import Draw, pack_point, unpack_point
from models.inference.objectives import Loss, negative_elbo
from models.inference.point import DrawsState, initial_weights
from models.likelihoods import Likelihood
from models.networks import LocallyDrawn, Network
from models.networks.network import fan_in, prior_layout
from models.posteriors.layout import Layout
from models.posteriors.mean_field import DiagonalNormal, MeanFieldNormal, softplus_inverse
from models.posteriors.priors import (
    EmpiricalBayesPrior,
    GaussianPrior,
    Prior,
    RelevancePrior,
    Scalar,
    ScaleMixturePrior,
    build_prior,
)
from models.posteriors.reparameterisation import Reparameterised, reparameterise
from models.tensors import TensorRecord
from models.training.distributed import Part

# Initial scale × √fan-in, as measured on tables of 277 to 927 rows: small enough that the first
# steps see the data through little noise, and it grows where the data say nothing.
_INITIAL_SIGMA = 0.05
# Under a prior that follows each weight nothing makes a scale grow: it starts wide instead, at
# about the initial means (docs/method.md has figures).
_INITIAL_SIGMA_PER_WEIGHT = 0.5


@dataclass(frozen=True)
class BBBState(TensorRecord):
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
        packed = tensors["mask"].numpy()
        if packed.nbytes != -(-num_weights // 8):
            raise ValueError(f"the mask has {packed.nbytes} bytes for {num_weights} weights")
        mask = torch.from_numpy(np.unpackbits(packed, count=num_weights).astype(bool))
        for kept in (tensors["loc"], tensors["rho"]):
            if kept.shape != (int(mask.sum()),):
                raise ValueError(f"the mask keeps {int(mask.sum())} weights of {kept.numel()}")
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
        layout = prior_layout(network.layers, separate_outputs=separate)
        prior = build_prior(config.prior, layout)
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
        """Random means; scales from `initial_sigma`, by default a share of 1/√fan-in.

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
        follows = isinstance(self.prior, RelevancePrior)
        share = _INITIAL_SIGMA_PER_WEIGHT if follows else _INITIAL_SIGMA
        return softplus_inverse(share / math.sqrt(fan_in(self.network.layers, name)))

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
        if self._local is None:
            drawn = self.draw(state, len(batch), generator)
            outputs, kl = self.network(drawn.weights, batch.inputs), drawn.penalty
        else:
            outputs, kl = self._draw_outputs(self._local, state, batch.inputs, generator, part)
        nll = -self.likelihood.log_prob(outputs, batch.targets, state.point)
        return negative_elbo(batch.weigh(nll), kl, self.num_data, kl_weight, part)

    def draw(self, state: BBBState, streams: int, generator: torch.Generator) -> Draw:
        """w ~ q, the same for all streams and steps, and the divergence from the prior, in nats."""
        noise = _standard_normal(state.posterior.loc, generator)
        drawn = self._reparameterise(state.posterior, noise)
        weights = self.layout.unflatten(drawn.first)
        return Draw(weights, self._divergence(state.posterior, drawn, noise))

    def collect(self, state: BBBState) -> None:
        """The last state, or the best, is all."""

    @cached_property
    def _local(self) -> LocallyDrawn | None:
        """The network, if its pre-activations are to be drawn."""
        if self.config.estimator == "weight" or not isinstance(self.network, LocallyDrawn):
            return None
        return self.network

    def _draw_outputs(
        self,
        network: LocallyDrawn,
        state: BBBState,
        x: Float[Tensor, "batch inputs"],
        generator: torch.Generator,
        part: Part,
    ) -> tuple[Float[Tensor, "batch outputs"], Scalar]:
        """One draw of what each layer adds up to instead of its weights, and the divergence.

        The whole mini-batch's noise is drawn, whatever the part: a row's does not depend on it.
        """
        moments = self._reparameterise(state.posterior, None)
        assert moments.variance is not None
        loc, variance = map(self.layout.unflatten, (moments.first, moments.variance))
        blocks = [
            x.new_empty(part.total, width).normal_(generator=generator)[part.rows]
            for width in network.noise_widths()
        ]
        outputs = network.local(loc, variance, x, blocks)
        noise = None
        if isinstance(self.prior, ScaleMixturePrior):
            noise = _standard_normal(state.posterior.loc, generator)
        return outputs, self._divergence(state.posterior, moments, noise)

    def _reparameterise(self, q: MeanFieldNormal, noise: Tensor | None) -> Reparameterised:
        """Its sums are over the slices that share a prior scale."""
        sizes = [q.loc.numel()]
        if isinstance(self.prior, EmpiricalBayesPrior):
            sizes = self.prior.layout.sizes
        return reparameterise(q.loc, q.rho, noise, sizes, q.mask)

    def _divergence(
        self, posterior: MeanFieldNormal, drawn: Reparameterised, noise: Tensor | None
    ) -> Scalar:
        """KL of the direction that is asked for, from sums where they are all it takes."""
        q = DiagonalNormal(posterior.loc, drawn.scale, posterior.mask)
        if self.config.kl.direction == "forward":
            return self.prior.forward_kl(q)
        if isinstance(self.prior, GaussianPrior | EmpiricalBayesPrior):
            return self.prior.gaussian_kl(drawn.squares, drawn.log_scale, q)
        return self.prior.reverse_kl(q, noise)


def _standard_normal(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.empty_like(like, requires_grad=False).normal_(generator=generator)
