"""Bayes by Backprop: stochastic gradients of the ELBO of a mean-field Gaussian.

Source: Blundell et al. 2015 (arXiv 1505.05424), §3; the local estimator is that of Kingma et al.
2015 (arXiv 1506.02557).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from models.config import BBBConfig, GaussianPriorConfig, KLConfig
from models.exceptions import InvalidData
from models.features.rows import Rows
from models.fitting.distributed import Part
from models.fitting.objectives import Loss, negative_elbo
from models.inference.method import (
    Draw,
    Method,
    State,
    check_point,
    check_tensor,
    named_point,
    unpack_point,
    with_last,
)
from models.inference.point import (
    DrawsState,
    initial_weights,
    joined_point,
    point_of_members,
    repeated,
)
from models.likelihoods import Likelihood, ShapedLikelihood
from models.networks import MLP, LocallyDrawn, Network, Stack, point_shape
from models.networks.network import fan_in
from models.posteriors.layout import StackedLayout
from models.posteriors.mean_field import (
    DiagonalNormal,
    MeanFieldNormal,
    Reparameterised,
    reparameterise,
    softplus_inverse,
)
from models.posteriors.priors import (
    EmpiricalBayesPrior,
    GaussianPrior,
    PerPart,
    Prior,
    RelevancePrior,
    ScaleMixturePrior,
    build_prior,
)
from models.posteriors.weight_groups import Groups, PartGroups, TensorGroups
from models.tensors import Constant

# Initial scale × √fan-in, measured on tables of 277 to 927 rows: small enough for little noise in
# the first steps. It grows where the data do not determine a weight.
_INITIAL_SIGMA = 0.05
# Under a prior with one scale per weight, nothing makes a scale grow. So it starts wide, at about
# the size of the initial means (docs/method.md has figures). With one scale per input, whose epoch
# is chosen by held-out rows, a narrow start overfits within some epochs, before the prior has
# shrunk what does not matter: on tables it looks as if the best epoch were one of the first.
_WIDE_INITIAL_SIGMA = 0.5


@dataclass(frozen=True)
class BBBState(State):
    """The variational posterior and the likelihood's point parameters."""

    kind = "mean_field"

    posterior: MeanFieldNormal
    point: dict[str, Tensor]

    @property
    def num_weights(self) -> int:
        return self.posterior.num_weights

    @property
    def num_noise(self) -> int:
        return self.posterior.loc.numel()

    @property
    def mean_field(self) -> MeanFieldNormal:
        return self.posterior

    @classmethod
    def joined(cls, states: Sequence["BBBState"]) -> "BBBState":
        posterior = MeanFieldNormal.joined([state.posterior for state in states])
        return cls(posterior, joined_point(states))

    def of_members(self, layout: StackedLayout, members: Sequence[int]) -> "BBBState":
        posterior = self.posterior.mapped(partial(layout.pick, members=members))
        return BBBState(posterior, point_of_members(self.point, members))

    def by_member(self, layout: StackedLayout) -> list["BBBState"]:
        """The state of each member alone, on the same memory."""
        q = self.posterior
        locs, rhos = layout.by_member(q.loc), layout.by_member(q.rho)
        masks = [None] * len(locs) if q.mask is None else layout.by_member(q.mask)
        return [
            BBBState(MeanFieldNormal(*parts), {k: v[i, 0] for k, v in self.point.items()})
            for i, parts in enumerate(zip(locs, rhos, masks, strict=True))
        ]

    def with_last_row(self, rows: int, width: int, seed: int) -> "BBBState":
        """The Gaussian with the moments of the others' mixture; it is not pruned."""
        q, posterior = self.posterior.distribution(), self.posterior
        table = [part[: (rows - 1) * width].unflatten(0, (-1, width)) for part in (q.loc, q.scale)]
        mean = table[0].mean(0)
        spread = (table[0].var(0, correction=0) + table[1].square().mean(0)).sqrt().clamp_min(1e-6)
        rho = torch.tensor([softplus_inverse(one) for one in spread.tolist()]).to(posterior.rho)
        mask = posterior.mask
        filled = MeanFieldNormal(
            with_last(posterior.loc, rows, mean),
            with_last(posterior.rho, rows, rho),
            None if mask is None else with_last(mask, rows, torch.ones_like(mask[:width])),
        )
        return replace(self, posterior=filled)

    def draws(self, noise: Float[Tensor, "draws noise"]) -> DrawsState:
        """Return weight vectors from standard normals, without gradients.

        They overwrite the noise: allocating new memory would take longer than the products. The
        point parameters are the same for all draws.
        """
        q = self.posterior.distribution()
        weights = q.kept(noise.to(q.loc).mul_(q.scale).add_(q.loc))
        point = {k: repeated(value, len(noise)) for k, value in self.point.items()}
        return DrawsState(weights, point)

    def parameters(self) -> list[Tensor]:
        return [self.posterior.loc, self.posterior.rho, *self.point.values()]

    def named(self) -> dict[str, Tensor]:
        q = self.posterior
        mask = {} if q.mask is None else {"mask": q.mask}
        return {"loc": q.loc, "rho": q.rho, **named_point(self.point), **mask}

    def at_mean(self) -> DrawsState:
        weights = self.posterior.distribution().moments()[0].detach()
        return DrawsState(weights.unsqueeze(0), {k: v[None] for k, v in self.point.items()})

    def pack(self) -> dict[str, Tensor]:
        """The tensors to store; of pruned weights only the mask, as bits."""
        packed = super().pack()
        if "mask" in packed:
            mask = packed["mask"]
            packed |= {name: packed[name][mask] for name in ("loc", "rho")}
            packed["mask"] = torch.from_numpy(np.packbits(mask.numpy()))
        return packed

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

    def check(self, network: Network, likelihood: Likelihood) -> None:
        check_point(self.point, likelihood, point_shape(network))
        for name in ("loc", "rho"):
            check_tensor(name, getattr(self.posterior, name), (network.layout.num_weights,))


@dataclass(frozen=True)
class BayesByBackprop(Method):
    """A stochastic gradient of the ELBO in (loc, rho).

    Raises:
        InvalidData: for parts with KL weights of their own beside one that varies or depends on
            the number of weights.
    """

    settings = BBBConfig
    stored = BBBState
    reads_texts = True
    is_stopped_early = False  # the KL prevents overfitting
    is_mean_field = True
    learns_keys = True

    config: BBBConfig

    def __post_init__(self) -> None:
        if self.part_weights and self.kl.weight in ("blundell", "parameters"):
            raise InvalidData(
                f"kl.weight {self.config.kl.weight!r} does not go with parts that have a kl_weight "
                "of their own: give a number or 'uniform'",
                "/method/kl/weight",
            )

    @cached_property
    def prior(self) -> Prior:
        groups = prior_groups(
            self.network,
            separate_outputs=bool(self.likelihood.noise_outputs),
            per_input=self._sigma == "per_input",
        )
        return build_prior(self.config.prior, groups)

    @cached_property
    def part_weights(self) -> tuple[float, ...] | None:
        """The KL weight of each part of a stack; None if all have that of the method."""
        if not isinstance(self.network, Stack):
            return None
        given = [part.kl_weight for part in self.network.parts]
        if all(weight is None for weight in given):
            return None
        rest = self.config.kl.weight
        rest = 1.0 if rest is None or isinstance(rest, str) else rest
        return tuple(rest if weight is None else weight for weight in given)

    @cached_property
    def _tempering(self) -> Constant:
        return Constant(self.part_weights or ())

    @cached_property
    def kl(self) -> KLConfig:
        """The weight of the KL; 1 if the parts have weights of their own, which `loss` applies."""
        config = self.config.kl
        varies = config.weight in ("blundell", "parameters")
        return replace(config, weight=1.0) if self.part_weights and not varies else config

    @property
    def num_parameters(self) -> int:
        """Variational parameters: a loc and a rho for each weight."""
        return 2 * self.layout.num_weights

    def init(self, generator: Generator) -> BBBState:
        """Random means; scales from `initial_sigma`, by default a multiple of 1/√fan-in.

        The predicted noise starts as a constant, independent of the inputs.
        """
        loc = initial_weights(self.network, self.likelihood, generator)
        tensors = self.layout.unflatten(loc).items()
        rho = {name: torch.full_like(t, self._initial_rho(name)) for name, t in tensors}
        posterior = MeanFieldNormal(loc, self.layout.flatten(rho))
        return BBBState(posterior, self.initial_point())

    @property
    def _sigma(self) -> object:
        """The scale of a Gaussian prior, or how it is learned."""
        return (
            self.config.prior.sigma if isinstance(self.config.prior, GaussianPriorConfig) else None
        )

    def _initial_rho(self, name: str) -> float:
        if self.config.initial_sigma != "auto":
            return softplus_inverse(self.config.initial_sigma)
        wide = isinstance(self.prior, RelevancePrior) or (
            self._sigma == "per_input" and self.part_weights != (0.0,)  # which are point estimates
        )
        wide = wide and "path." not in name  # whose draws would be noise of the noise
        scale = _WIDE_INITIAL_SIGMA if wide else _INITIAL_SIGMA
        return softplus_inverse(scale / math.sqrt(fan_in(self.network.layers, name)))

    def loss(
        self, state: BBBState, batch: Rows, kl_weight: float, noise: Generator, part: Part
    ) -> Loss:
        """Return the negative ELBO per row, estimated with one draw."""
        if self._local is None:
            weights, kl = self._drawn(state, noise)
            outputs = self.products(self.network, weights, batch.inputs)
        else:
            outputs, kl = self._draw_outputs(self._local, state, batch.inputs, noise, part)
        if batch.offsets is not None:
            assert isinstance(self.likelihood, ShapedLikelihood), "only these have a process below"
            outputs = self.likelihood.moved(outputs, batch.offsets)
        nll = -self.likelihood.log_prob(outputs, batch.targets, state.point)
        tempered = None
        if self.part_weights is not None:
            tempered = kl.dot(self._tempering.like(kl))
        return negative_elbo(
            batch.weigh(nll), kl.sum(), self.num_data, kl_weight, part, tempered=tempered
        )

    def draw(self, state: BBBState, streams: int, generator: Generator) -> Draw:
        """Draw w ~ q, the same for all streams and steps; the penalty is the KL divergence."""
        weights, kl = self._drawn(state, generator)
        return Draw(weights, kl.sum())

    def _drawn(self, state: BBBState, generator: Generator) -> tuple[dict[str, Tensor], PerPart]:
        """One draw of the weights, and the divergence."""
        noise = _standard_normal(state.posterior.loc, generator)
        drawn = self._reparameterise(state.posterior, noise)
        return self.layout.unflatten(drawn.first), self._divergence(state.posterior, drawn, noise)

    @cached_property
    def _local(self) -> LocallyDrawn | None:
        """The network if the local estimator is used, else None."""
        network = self.network
        if self.config.estimator != "weight" and isinstance(network, LocallyDrawn):
            return network
        return None

    def _draw_outputs(
        self,
        network: LocallyDrawn,
        state: BBBState,
        x: Float[Tensor, "batch inputs"],
        generator: Generator,
        part: Part,
    ) -> tuple[Float[Tensor, "*members batch outputs"], PerPart]:
        """Draw each layer's pre-activations instead of its weights; also return the divergence."""
        moments = self._reparameterise(state.posterior, None)
        assert moments.variance is not None
        loc, variance = map(self.layout.unflatten, (moments.first, moments.variance))
        blocks = [
            x.new_empty(part.total, width).normal_(generator=generator)[part.rows]
            for width in network.noise_widths()
        ]
        outputs = self.products(network.local, loc, variance, x, blocks)
        noise = None
        if isinstance(self.prior, ScaleMixturePrior):
            noise = _standard_normal(state.posterior.loc, generator)
        return outputs, self._divergence(state.posterior, moments, noise)

    def _reparameterise(self, q: MeanFieldNormal, noise: Tensor | None) -> Reparameterised:
        """Reparameterise, with sums over the slices of weights that share a prior scale."""
        return reparameterise(q.loc, q.rho, noise, self._groups, q.mask)

    @cached_property
    def _groups(self) -> Groups:
        if isinstance(self.prior, EmpiricalBayesPrior):
            return self.prior.groups
        return Groups.whole(self.layout.part_sizes)

    def _divergence(
        self, posterior: MeanFieldNormal, drawn: Reparameterised, noise: Tensor | None
    ) -> PerPart:
        """The KL divergence in the configured direction, from known sums if they are enough."""
        q = DiagonalNormal(posterior.loc, drawn.scale, posterior.mask)
        sizes = self.layout.part_sizes
        if self.config.kl.direction == "forward":
            return torch.stack([self.prior.forward_kl(part) for part in q.parts(sizes)])
        if isinstance(self.prior, GaussianPrior | EmpiricalBayesPrior):
            return self.prior.gaussian_kl(drawn.squares, drawn.log_scale, self._groups, q)
        noises = [None] * len(sizes) if noise is None else noise.split(sizes)
        pairs = zip(q.parts(sizes), noises, strict=True)
        return torch.stack([self.prior.reverse_kl(part, drawn_by) for part, drawn_by in pairs])


def _standard_normal(like: Tensor, generator: Generator) -> Tensor:
    return torch.empty_like(like, requires_grad=False).normal_(generator=generator)


def prior_groups(
    network: Network, *, separate_outputs: bool = False, per_input: bool = False
) -> Groups:
    """Which weights share a learned prior scale: by default each tensor has one.

    Args:
        separate_outputs: each output of the last layer has its own scale, for outputs of different
            meaning such as mean and log-variance.
        per_input: the weights of a layer that leave one input share a scale.

    Raises:
        ValueError: for scales per input of a network that is no MLP.
    """
    parts: list[tuple[int, Network]]
    if isinstance(network, Stack):
        parts = [(part.count, part.network) for part in network.parts]
    elif isinstance(network, MLP) or not per_input:
        parts = [(1, network)]
    else:
        raise ValueError(f"a {type(network).__name__} has no scales per input, only an MLP has")
    return Groups(tuple(_part(*part, separate_outputs, per_input) for part in parts))


def _part(members: int, network: Network, separate_outputs: bool, per_input: bool) -> PartGroups:
    """The groups of each tensor in turn."""
    layers = network.layers
    reading = (network.path, network.dense[0]) if isinstance(network, MLP) else ()
    tensors: list[TensorGroups] = []
    start = 0
    for layer in layers:
        for name, shape in layer.shapes().items():
            if per_input and layer in reading and name.endswith(".weight"):
                groups = TensorGroups(start, (1, shape[0], shape[1]))
            elif separate_outputs and layer is layers[-1]:
                # The outputs come last in a bias, and before the inputs in a weight.
                outputs = math.prod(shape[:-1]) if name.endswith(".weight") else math.prod(shape)
                groups = TensorGroups(start, (outputs, math.prod(shape) // outputs, 1))
            else:
                groups = TensorGroups(start, (1, math.prod(shape), 1))
            tensors.append(groups)
            start = groups.stop
    return PartGroups(members, tuple(tensors))
