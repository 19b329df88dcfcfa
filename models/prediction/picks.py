"""Which of the values that fill a row (`features.unseen_values`) each of its samples has."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.features.unseen_values import Copies
from models.prediction.fitted import Sampled
from models.randomness import generator

LEAST = 128  # samples of a row, where there are fewer only because nothing is drawn


@dataclass(frozen=True, eq=False)
class Picks:
    """The samples of the mixture over the copies of a row.

    Args:
        source: of each pick the sample that it is made of.
        copies: of each pick the copy that it is, and two whose difference moves it.
        number: of copies of each row.
        step: w of `features.unseen_values`.
        widening: factor on what lies between the copies of a row.
    """

    source: Int[Tensor, "picks"]
    copies: Int[Tensor, "3 picks"]
    number: int
    step: float
    widening: float

    @classmethod
    def draw(
        cls, samples: int, copies: Copies, seed: int, *, least: int = 1, widening: float = 1.0
    ) -> "Picks":
        """Evenly spread copies, those of a member, too: Kronecker's sequences, moved by the seed.

        Args:
            least: picks; each of fewer samples is picked several times.
        """
        times = -(-least // samples)
        shifts = torch.rand(3, 1, generator=generator(seed, "picks"), dtype=torch.float64)
        rates = torch.tensor([[2.0], [3.0], [5.0]], dtype=torch.float64).sqrt()
        places = (shifts + rates * torch.arange(samples * times)) % 1
        chosen = (places * len(copies)).long().clamp_(max=len(copies) - 1)
        source = torch.arange(samples).repeat_interleave(times)
        return cls(source, chosen, len(copies), (copies.excess / 2) ** 0.5, widening)

    def of_outputs(
        self, outputs: Float[Tensor, "samples filled outputs"], locations: int
    ) -> Float[Tensor, "picks rows outputs"]:
        """The outputs of each pick, of which the first ones, so many locations, are moved."""
        own, first, second = (self._taken(outputs, copy) for copy in self.copies)
        moves = self.step * (first - second)[..., :locations]
        if self.widening != 1:
            centre = outputs.unflatten(1, (-1, self.number))[..., :locations].mean(2)
            apart = own[..., :locations] - centre[self.source.to(centre.device)]
            moves = self.widening * (apart + moves) - apart
        return torch.cat([own[..., :locations] + moves, own[..., locations:]], -1)

    def of_sampled(self, parts: Sequence[Sampled], locations: int) -> Sampled:
        """The same of outputs as moments. `parts` are of filled rows that follow each other."""
        first, times = parts[0], len(self.source) // parts[0].num_samples
        known = [part.integrated for part in parts if part.integrated is not None]
        mean, *variance = torch.cat([part.outputs for part in parts], 2)
        moments = [self.of_outputs(mean, locations)]
        moments += [self._taken(part, self.copies[0]) for part in variance]
        source = self.source.to(mean.device)
        return replace(
            first,
            moments=torch.stack(moments),
            noise=None if first.noise is None else first.noise[source],
            counts=tuple(times * count for count in first.counts),
            column=None,
            integrated=self._integrated(known),
            point={k: v if len(v) == 1 else v[source] for k, v in first.point.items()},
            owners=None if first.owners is None else first.owners[source],
        )

    def _taken(self, outputs: Tensor, copy: Int[Tensor, "picks"]) -> Tensor:
        index = self.source.to(outputs.device), copy.to(outputs.device)
        return outputs.unflatten(1, (-1, self.number))[index[0], :, index[1]]

    def _integrated(self, parts: list[Tensor]) -> Float[Tensor, "2 members rows 1"] | None:
        """Moments over the copies, too: E Var + c² (1 + 2w²) Var E, widened by c."""
        if not parts:
            return None
        mean, variance = torch.cat(parts, 2).unflatten(2, (-1, self.number))
        between = mean.var(2, unbiased=False)
        factor = self.widening**2 * (1 + 2 * self.step**2)
        return torch.stack([mean.mean(2), variance.mean(2) + factor * between])
