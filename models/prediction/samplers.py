"""Outputs of a network under its posterior, by sampling or by moments alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.prediction.fitted import Fitted
from models.prediction.local import First, Gaussian, LocalNetwork, Scratch
from models.prediction.moments import integrate_last, propagate
from models.prediction.noise import Noise
from models.prediction.sobol import Sobol

MEAN = slice(0, 1)  # the output that is the mean of a Gaussian likelihood
# Nodes of the quadrature over the outputs, if nothing else is sampled: in all, and per member.
_NODES, _NODES_OF_MEMBER = 128, 16

DrawNoise = Callable[[int, int], Noise]


@dataclass(frozen=True)
class Sampled:
    """Moments of the outputs given each sample's hidden layers, and normals to draw them with.

    `integrated` are the moments of the first output with nothing drawn, one per member; None if
    unknown. `point` are the likelihood's point parameters: of all samples, or [samples, 1].
    `member` is the member that each sample belongs to, if there are several. Rows have the same
    noise, unless several seeds are beside each other: then it is [samples, rows, outputs].
    """

    outputs: Gaussian
    noise: Float[Tensor, "samples *_rows outputs"]
    integrated: Gaussian | None = None
    point: dict[str, Tensor] = field(default_factory=dict)
    member: Int[Tensor, "samples"] | None = None

    def drawn(self, *, keep_mean: bool = False) -> Float[Tensor, "samples rows outputs"]:
        """A draw of the outputs; with `keep_mean` the first output stays at its mean."""
        mean, variance = self.outputs
        noise = self.noise.unsqueeze(1) if self.noise.ndim == 2 else self.noise
        drawn = torch.addcmul(mean, variance.sqrt(), noise)
        if keep_mean:
            drawn[..., MEAN] = mean[..., MEAN]
        return drawn

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(self.noise)

    def moved(self, moves: Float[Tensor, "samples rows"], locations: int) -> "Sampled":
        """The first outputs of each sample, so many locations, moved."""
        mean, variance = self.outputs
        moved = mean[..., :locations] + moves.unsqueeze(-1)
        return replace(self, outputs=(torch.cat([moved, mean[..., locations:]], -1), variance))

    @classmethod
    def beside(cls, parts: Sequence["Sampled"]) -> "Sampled":
        """The same rows by several seeds, as rows one seed after the other."""
        if len(parts) == 1:
            return parts[0]
        first, known = parts[0], [part.integrated for part in parts if part.integrated is not None]
        noise = [part.noise.unsqueeze(1).expand(part.outputs[0].shape) for part in parts]
        integrated = known and _along_rows(known)
        outputs = _along_rows([part.outputs for part in parts])
        return replace(
            first, outputs=outputs, noise=torch.cat(noise, 1), integrated=integrated or None
        )

    def double(self) -> "Sampled":
        """A copy in float64, except for the point parameters."""
        integrated = self.integrated and _double(self.integrated)
        outputs, noise = _double(self.outputs), self.noise.double()
        return replace(self, outputs=outputs, noise=noise, integrated=integrated)


def _along_rows(parts: Sequence[Gaussian]) -> Gaussian:
    means, variances = zip(*parts, strict=True)
    return torch.cat(means, 1), torch.cat(variances, 1)


@dataclass(frozen=True)
class Share:
    """The samples of one member: positions among all samples, and in the seed's sequence."""

    member: Fitted
    samples: slice

    @property
    def count(self) -> int:
        return self.samples.stop - self.samples.start


def divide(members: Sequence[Fitted], num_samples: int) -> list[Share]:
    """Divide samples among members as evenly as possible.

    Fewer samples than members go to evenly spread members.
    """
    total = len(members)
    ends = [num_samples * i // total for i in range(total + 1)]
    shares = [Share(m, slice(*ends[i : i + 2])) for i, m in enumerate(members)]
    return [share for share in shares if share.count]


def sample(
    shares: Sequence[Share],
    x: Float[Tensor, "rows inputs"],
    draw_noise: Callable[[Fitted], DrawNoise],
    chunk: int,
    *,
    integrate: bool = False,
) -> Sampled:
    """Outputs by local reparameterisation, `chunk` samples of a member at a time.

    With `integrate` the result also has the moments `integrated`, if they are known.
    """
    outputs, noise, exact = pass_samples(shares, x, draw_noise, chunk, integrate=integrate)
    return Sampled(outputs, noise, exact, points(shares), owners(shares, x))


def pass_samples(
    shares: Sequence[Share],
    x: Float[Tensor, "rows inputs"],
    draw_noise: Callable[[Fitted], DrawNoise],
    chunk: int,
    *,
    integrate: bool,
) -> tuple[Gaussian, Float[Tensor, "samples outputs"], Gaussian | None]:
    """The fields `outputs`, `noise` and `integrated` of `sample`.

    It reads no number from a device, so that its operations can be recorded.
    """
    num_samples, outputs = shares[-1].samples.stop, shares[0].member.local.widths[-1]
    most = min(chunk, max(share.count for share in shares))
    widest = max(share.member.local.max_width for share in shares)
    scratch = Scratch(most * len(x), widest, x)
    # Allocated once: small results between large temporaries would fragment the heap.
    gaussian = x.new_empty(2, num_samples, len(x), outputs)
    noise_of_outputs = x.new_empty(num_samples, outputs)
    exact: list[Gaussian | None] = []
    for share in shares:
        local, draw = share.member.local, draw_noise(share.member)
        first = local.first(share.member.inputs(x))
        exact.append(_exact(local, first) if integrate else None)
        for start in range(share.samples.start, share.samples.stop, chunk):
            samples = slice(start, min(start + chunk, share.samples.stop))
            noise = draw(samples.start, samples.stop)
            gaussian[0, samples], gaussian[1, samples] = local.outputs(first, noise, scratch)
            noise_of_outputs[samples] = noise[-1]
    return (gaussian[0], gaussian[1]), noise_of_outputs, joined(exact)


def output_nodes(num_outputs: int, num_members: int = 1) -> Float[Tensor, "nodes outputs"]:
    """Evenly spread standard normals, for a quadrature over the outputs of all members."""
    return Sobol.build(num_outputs).normals(0, 0, max(_NODES, _NODES_OF_MEMBER * num_members))


def sample_moments(
    members: Sequence[Fitted],
    x: Float[Tensor, "rows inputs"],
    nodes: Float[Tensor, "nodes outputs"],
) -> Sampled:
    """Moments of the outputs by propagation; the nodes, divided among members, replace draws."""
    shares = divide(members, len(nodes))
    return of_moments(shares, propagate_members(shares, x), nodes)


def propagate_members(
    shares: Sequence[Share], x: Float[Tensor, "rows inputs"]
) -> tuple[Float[Tensor, "members rows outputs"], Float[Tensor, "members rows outputs"]]:
    """Means and variances of the outputs of each member."""
    parts = [propagate(share.member.local, share.member.inputs(x)) for share in shares]
    return torch.stack([mean for mean, _ in parts]), torch.stack([spread for _, spread in parts])


def of_moments(
    shares: Sequence[Share], moments: Gaussian, nodes: Float[Tensor, "nodes outputs"]
) -> Sampled:
    """The moments of each member, repeated for its nodes."""
    exact = moments[0][..., MEAN], moments[1][..., MEAN]
    mean, variance = (
        torch.cat([part.expand(s.count, -1, -1) for part, s in zip(own, shares, strict=True)])
        for own in moments
    )
    return Sampled((mean, variance), nodes, exact, points(shares))


def _exact(local: LocalNetwork, first: First) -> Gaussian | None:
    """Moments of the predicted mean without sampling, if they are exact and cheap.

    With one hidden layer, whose units are independent, they cost as much as one sample. In a deeper
    network the last hidden layer would be integrated for each sample, which costs more than the
    samples that it saves (docs/benchmarks.md).
    """
    match len(local.layers):
        case 1:
            return first.units[0][..., MEAN], first.units[1][..., MEAN]
        case 2:
            return integrate_last(local, first, MEAN)
    return None


def joined(parts: Sequence[Gaussian | None]) -> Gaussian | None:
    """The moments of all members; None if those of one are unknown."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return torch.cat([mean for mean, _ in known]), torch.cat([spread for _, spread in known])


def points(shares: Sequence[Share]) -> dict[str, Tensor]:
    """The point parameters: as they are for one member, else those of each sample."""
    if len(shares) == 1:
        return shares[0].member.point
    return {
        name: torch.cat([share.member.point[name].expand(share.count, 1) for share in shares])
        for name in shares[0].member.point
    }


def owners(shares: Sequence[Share], like: Tensor) -> Int[Tensor, "samples"] | None:
    """The number of the member that each sample belongs to; None if there is one member."""
    if len(shares) == 1:
        return None
    counts = torch.tensor([share.count for share in shares], device=like.device)
    return torch.arange(len(shares), device=like.device).repeat_interleave(counts)


def _double(gaussian: Gaussian) -> Gaussian:
    mean, variance = gaussian
    return mean.double(), variance.double()
