"""How many draws a forecast has of the network, and how many of the classical members."""

import math
from dataclasses import dataclass

from models.forecasting.rollout import Paths

PATHS, ALL_PATHS = 10, 1_000  # per weight draw; at least in all
_MIXED = 100  # draws of both together, if the network has few


@dataclass(frozen=True)
class Split:
    """The draws of one forecast.

    Args:
        network: weight draws.
        repeats: times that each counts, with paths of its own.
        classics: draws of the classical members' parameters.
        paths: per draw, counted as often as it is repeated.
    """

    network: int
    repeats: int
    classics: int
    paths: int

    @classmethod
    def plan(cls, samples: int, kept: int | None, share: float) -> "Split":
        """
        Args:
            kept: weight draws that a method has stored; None if there are as many as are asked for.
            share: of the classical members.
        """
        if kept is None:
            classics = round(share * samples)
            return cls(samples - classics, 1, classics, PATHS)
        if share <= 0:
            return cls(samples, 1, 0, paths_per_draw(kept))
        together = max(_MIXED, samples)
        repeats = round((1 - share) * together / samples)
        if not repeats:
            return cls(0, 1, together, max(PATHS, ALL_PATHS // together))
        network = samples * repeats
        classics = max(1, round(network * share / (1 - share)))
        return cls(samples, repeats, classics, max(PATHS, ALL_PATHS // (network + classics)))

    @property
    def all_paths(self) -> int:
        """Paths of all draws together."""
        return self.paths * (self.network * self.repeats + self.classics)

    def repeated(self, paths: Paths) -> Paths:
        """The network's paths with each draw as often as it counts."""
        shape = (self.repeats, self.paths)
        return paths.each(lambda part: part.unflatten(1, shape).flatten(0, 1))


def paths_per_draw(num_draws: int | None) -> int:
    """Ten, or more if few weight draws were kept, so that there are at least 1,000 paths in all."""
    return PATHS if num_draws is None else max(PATHS, math.ceil(ALL_PATHS / num_draws))
