"""Bayes by Backprop: stochastic gradients of the ELBO of a mean-field Gaussian.

Source: Blundell et al. 2015 (arXiv 1505.05424), §3; the local estimator is that of Kingma et al.
2015 (arXiv 1506.02557).
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

# Initial scale × √fan-in, measured on tables of 277 to 927 rows: small enough for little noise in
# the first steps. It grows where the data do not determine a weight.
_INITIAL_SIGMA = 0.05
# Under a prior with one scale per weight, nothing makes a scale grow. So it starts wide, at about
# the size of the initial means (docs/method.md has figures).
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
        """Return weight vectors from standard normals, without gradients.

        They overwrite the noise: allocating new memory would take longer than the products. The
        point parameters are the same for all draws.
        """
        q = self.posterior.distribution()
        weights = q.kept(noise.to(q.loc).mul_(q.scale).add_(q.loc))
        point = {name: value.expand(len(noise), 1) for name, value in self.point.items()}
        return DrawsState(weights, point)

    def parameters(self) -> list[Tensor]:
        """The leaves an optimiser moves."""
        return [self.posterior.loc, self.posterior.rho, *self.point.values()]

    def tensors(self) -> list[Tensor]:
        """The parameters and, if weights are pruned, the mask."""
        mask = self.posterior.mask
        return self.parameters() if mask is None else [*self.parameters(), mask]

    def pack(self) -> dict[str, Tensor]:
        """The tensors to store; of pruned weights only the mask, as bits."""
        q, point = self.posterior, pack_point(self.point)
        if q.mask is None:
            return {**point, "loc": q.loc.detach().cpu(), "rho": q.rho.detach().cpu()}
        bits = np.packbits(q.mask.cpu().numpy())
        kept = {"loc": q.loc[q.mask].detach().cpu(), "rho": q.rho[q.mask].detach().cpu()}
        return {**point, **kept, "mask": torch.from_numpy(bits)}

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "BBBState":
        """Pruned weights get loc 0 and rho 0, which the mask hides.

        Raises:
            ValueError: if the sizes of mask and values do not fit together.
        """
        point = unpack_point(tensors)
        if "mask" not in tensors:
            return cls(MeanFieldNormal(tensors["loc"], tensors["rho"]), point)
        packed = tensors["mask"].numpy()
        needed = -(-num_weights // 8)
        if packed.nbytes != needed:
            raise ValueError(f"the mask has {packed.nbytes} bytes instead of {needed}")
        mask = torch.from_numpy(np.unpackbits(packed, count=num_weights).astype(bool))
        for kept in (tensors["loc"], tensors["rho"]):
            if kept.shape != (int(mask.sum()),):
                raise ValueError(f"the mask keeps {int(mask.sum())} of {kept.numel()} values")
        parts = [torch.zeros(num_weights).masked_scatter(mask, tensors[k]) for k in ("loc", "rho")]
        return cls(MeanFieldNormal(parts[0], parts[1], mask), point)


@dataclass(frozen=True)
class BayesByBackprop:
    """The method bound to a network, a likelihood and the number of rows."""

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
        """Random means; scales from `initial_sigma`, by default a multiple of 1/√fan-in.

        The predicted noise starts as a constant, independent of the inputs.
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
        per_weight = isinstance(self.prior, RelevancePrior)
        scale = _INITIAL_SIGMA_PER_WEIGHT if per_weight else _INITIAL_SIGMA
        return softplus_inverse(scale / math.sqrt(fan_in(self.network.layers, name)))

    def loss(
        self,
        state: BBBState,
        batch: Rows,
        kl_weight: float,
        generator: torch.Generator,
        part: Part | None = None,
    ) -> Loss:
        """Return the negative ELBO per row, estimated with one draw.

        Args:
            part: the part of the mini-batch that `batch` holds; by default all of it. The losses
                of all parts add up to the loss of the mini-batch.
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
        """Draw w ~ q, the same for all streams and steps; the penalty is the KL divergence."""
        noise = _standard_normal(state.posterior.loc, generator)
        drawn = self._reparameterise(state.posterior, noise)
        weights = self.layout.unflatten(drawn.first)
        return Draw(weights, self._divergence(state.posterior, drawn, noise))

    def collect(self, state: BBBState) -> None:
        """Do nothing: only the last or the best state is used."""

    @cached_property
    def _local(self) -> LocallyDrawn | None:
        """The network if the local estimator is used, else None."""
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
        """Draw each layer's pre-activations instead of its weights; also return the divergence.

        Noise is drawn for the whole mini-batch, so that a row's noise does not depend on the part.
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
        """Reparameterise, with sums over the slices of weights that share a prior scale."""
        sizes = [q.loc.numel()]
        if isinstance(self.prior, EmpiricalBayesPrior):
            sizes = self.prior.layout.sizes
        return reparameterise(q.loc, q.rho, noise, sizes, q.mask)

    def _divergence(
        self, posterior: MeanFieldNormal, drawn: Reparameterised, noise: Tensor | None
    ) -> Scalar:
        """The KL divergence in the configured direction, from known sums if they are enough."""
        q = DiagonalNormal(posterior.loc, drawn.scale, posterior.mask)
        if self.config.kl.direction == "forward":
            return self.prior.forward_kl(q)
        if isinstance(self.prior, GaussianPrior | EmpiricalBayesPrior):
            return self.prior.gaussian_kl(drawn.squares, drawn.log_scale, q)
        return self.prior.reverse_kl(q, noise)


def _standard_normal(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.empty_like(like, requires_grad=False).normal_(generator=generator)
