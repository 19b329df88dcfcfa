"""Passes through a network by replays: as `models.prediction.samplers`, with the same noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor

from models.prediction.device.replays import Replays
from models.prediction.device.tapes import Tensors
from models.prediction.fitted import Fitted
from models.prediction.noise import Noise
from models.prediction.request_noise import RequestNoise
from models.prediction.samplers import (
    DrawNoise,
    Sampled,
    Share,
    divide,
    of_moments,
    owners,
    pass_samples,
    points,
    propagate_members,
)

# Rows × samples. Operations of a larger pass take longer than starting them, so that a graph saves
# nothing, and its memory grows with the pass. Not measured on a card.
MOST_PAIRS = 2**16


@dataclass(frozen=True)
class Recorded:
    """The members of a posterior, whose passes are recorded.

    The layers' kernels must not depend on the rows around a row, as none does.
    """

    replays: Replays
    members: Sequence[Fitted]

    def sample(
        self, x: Float[Tensor, "rows inputs"], samples: int, noise: RequestNoise, *, integrate: bool
    ) -> Sampled:
        """As `samplers.sample`, all samples at once."""
        shares = divide(self.members, samples)
        blocks = [noise.of_member(share.member)(*_ends(share)) for share in shares]

        def run(inputs: Tensors) -> Tensors:
            rows, *flat = inputs
            draw = _Static.of(shares, flat).draw_noise
            outputs, _, exact = pass_samples(shares, rows, draw, samples, integrate=integrate)
            return outputs if exact is None else (*outputs, *exact)

        key = (self._key, "samples", samples, integrate)
        mean, variance, *exact = self.replays(key, run, x, tuple(b for own in blocks for b in own))
        return Sampled(
            (mean, variance),
            torch.cat([own[-1] for own in blocks]),
            (exact[0], exact[1]) if exact else None,
            points(shares),
            owners(shares, x),
        )

    def sample_moments(
        self, x: Float[Tensor, "rows inputs"], nodes: Float[Tensor, "nodes outputs"]
    ) -> Sampled:
        """As `samplers.sample_moments`."""
        shares = divide(self.members, len(nodes))

        def run(inputs: Tensors) -> Tensors:
            return propagate_members(shares, inputs[0])

        mean, variance = self.replays((self._key, "moments", len(nodes)), run, x, ())
        return of_moments(shares, (mean, variance), nodes)

    @property
    def _key(self) -> tuple[int, ...]:
        """The members, which every tape holds, so that no other can get their numbers."""
        return tuple(map(id, self.members))


@dataclass(frozen=True)
class _Static:
    """The noise of all shares, which a tape reads at the same place in each play."""

    by_member: dict[int, Noise]

    @classmethod
    def of(cls, shares: Sequence[Share], flat: Sequence[Tensor]) -> "_Static":
        rest = iter(flat)
        return cls({id(s.member): tuple(islice(rest, len(s.member.local.layers))) for s in shares})

    def draw_noise(self, member: Fitted) -> DrawNoise:
        return lambda start, stop: self.by_member[id(member)]


def _ends(share: Share) -> tuple[int, int]:
    return share.samples.start, share.samples.stop
