"""Members of equal shape in one product per layer, for requests of a few rows.

A small request is all overhead: eight members one after the other take three times as long as one
network, although the products are the same. Larger ones gain nothing, and use `samplers.sample`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models.prediction.fitted import Fitted
from models.prediction.local import IN_PLACE, Gaussian, LayerMoments
from models.prediction.moments import activation_moments
from models.prediction.noise import Noise
from models.prediction.products import OneDnnLayer
from models.prediction.samplers import MEAN, Sampled, Share, joined, owners, points

MAX_PAIRS = 1_600  # rows × samples: above it, products take longer than calls
_MAX_WEIGHTS = 2**21  # that are copied for it: 16 MiB of means and variances

Moments = Float[Tensor, "2 members _ _"]


@dataclass(frozen=True)
class Together:
    """The layers of consecutive members of equal shape, stacked along a member axis.

    Args:
        weights, biases: per layer [2, members, units, inputs] and [2, members, 1, units].
        path: weights of the linear path, if there is one.
    """

    members: tuple[Fitted, ...]
    weights: tuple[Moments, ...]
    biases: tuple[Float[Tensor, "2 members 1 _"], ...]
    path: Moments | None

    @classmethod
    def of(cls, members: Sequence[Fitted]) -> "Together | None":
        """Stack the members; None if a layer has a kernel of its own, or all are too large."""
        local = [member.local for member in members]
        layers = [one.layers for one in local]
        same = [
            [one.dense if isinstance(one, OneDnnLayer) else one for one in own] for own in layers
        ]
        dense = [[one for one in own if isinstance(one, LayerMoments)] for own in same]
        has_products = sum(map(len, dense)) < sum(map(len, layers))
        if has_products or sum(m.posterior.loc.numel() for m in members) > _MAX_WEIGHTS:
            return None
        by_layer = list(zip(*dense, strict=True))
        weights = tuple(torch.stack([one.weight for one in own], 1) for own in by_layer)
        biases = tuple(torch.stack([one.bias for one in own], 1) for own in by_layer)
        paths = [one.skip.weight for one in local if one.skip is not None]
        return cls(tuple(members), weights, biases, torch.stack(paths, 1) if paths else None)

    def sample(
        self, x: Float[Tensor, "rows inputs"], noise: Noise, *, integrate: bool
    ) -> tuple[Gaussian, Gaussian | None]:
        """Moments of the outputs, [members, samples, rows, outputs], and of the exact mean.

        Args:
            noise: per layer [members · samples, units].
        """
        count, rows = len(self.members), len(x)
        mean, variance = self._layer(0, self.members[0].inputs(x).unsqueeze(0), count)
        path = None if self.path is None else self._path(self.members[0].inputs(x))
        exact = self._exact(mean, variance, path) if integrate else None
        samples = len(noise[0]) // count
        mean, variance = mean.unsqueeze(1), variance.unsqueeze(1)
        activation = IN_PLACE[self.members[0].local.activation]
        for i, block in enumerate(noise[:-1], start=1):
            drawn = block.view(count, samples, 1, -1)
            hidden = activation(torch.addcmul(mean, variance.sqrt(), drawn))
            moments = self._layer(i, hidden.flatten(1, 2), count)
            mean, variance = (part.view(count, samples, rows, -1) for part in moments)
        if path is not None:
            mean, variance = mean + path[0].unsqueeze(1), variance + path[1].unsqueeze(1)
        shape = (-1, samples, -1, -1)
        return (mean.expand(shape), variance.expand(shape)), exact

    def _layer(self, i: int, x: Float[Tensor, "_ rows inputs"], count: int) -> Gaussian:
        """Moments of a layer's pre-activations, [members, rows, units]."""
        pair = torch.stack([x, x.square()]).expand(-1, count, -1, -1)
        outputs = torch.baddbmm(
            self.biases[i].flatten(0, 1), pair.flatten(0, 1), self.weights[i].flatten(0, 1).mT
        )
        return outputs[:count], outputs[count:]

    def _path(self, x: Float[Tensor, "rows inputs"]) -> Gaussian:
        assert self.path is not None
        return x @ self.path[0].mT, x.square() @ self.path[1].mT

    def _exact(self, mean: Tensor, variance: Tensor, path: Gaussian | None) -> Gaussian | None:
        """As `models.prediction.samplers`: the mean of at most one hidden layer is integrated."""
        match len(self.weights):
            case 1:
                return mean[..., MEAN], variance[..., MEAN]
            case 2:
                centre, spread = activation_moments(
                    self.members[0].local.activation, mean, variance
                )
                loc, scale = self.weights[1][:, :, MEAN]
                bias = self.biases[1][..., MEAN]
                first = centre @ loc.mT + bias[0]
                second = (spread + centre.square()) @ scale.mT + spread @ loc.square().mT + bias[1]
                if path is not None:
                    first, second = first + path[0][..., MEAN], second + path[1][..., MEAN]
                return first, second
        return None


DrawBlocks = Callable[[tuple[int, ...], tuple[int, ...], int], Noise]
"""Of the widths of layers, each member's first sample, and the samples of each."""


def sample_together(
    groups: Sequence[Together],
    shares: Sequence[Share],
    x: Float[Tensor, "rows inputs"],
    draw: DrawBlocks,
    *,
    integrate: bool,
) -> Sampled:
    """As `models.prediction.samplers.sample`, with the same samples.

    All members of a group get as many samples as one of them needs; what is too much is dropped.
    """
    most = max(share.count for share in shares)
    by_member = {id(share.member): share.samples for share in shares}
    means, variances, noises, exact = [], [], [], []
    for group in groups:
        used = [by_member.get(id(member), slice(0, 0)) for member in group.members]
        counts = [samples.stop - samples.start for samples in used]
        starts = tuple(samples.start for samples in used)
        noise = draw(group.members[0].widths, starts, most)
        outputs, known = group.sample(x, noise, integrate=integrate)
        # An empty list would make a tensor of floats: few samples leave some groups without one.
        places = [i * most + j for i, n in enumerate(counts) for j in range(n)]
        index = torch.tensor(places, dtype=torch.long)
        mean, variance = (part.flatten(0, 1)[index] for part in outputs)
        means.append(mean)
        variances.append(variance)
        noises.append(noise[-1][index])
        chosen = torch.tensor([count > 0 for count in counts])
        exact.append(known and (known[0][chosen], known[1][chosen]))
    return Sampled(
        (torch.cat(means), torch.cat(variances)),
        torch.cat(noises),
        joined(exact) if integrate else None,
        points(shares),
        owners(shares, x),
    )


def stack_members(members: Sequence[Fitted]) -> tuple[Together, ...]:
    """Members of equal shape that follow each other; empty if some cannot be stacked."""
    if any(member.live is not None for member in members):  # pruned to units of their own
        return ()
    groups: list[list[Fitted]] = []
    for member in members:
        if groups and _alike(groups[-1][0], member):
            groups[-1].append(member)
        else:
            groups.append([member])
    made = [Together.of(group) for group in groups]
    found = tuple(one for one in made if one is not None)
    return found if len(found) == len(made) < len(members) else ()


def _alike(one: Fitted, other: Fitted) -> bool:
    return one.widths == other.widths and one.reads is other.reads
