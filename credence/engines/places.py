"""Where Ray puts the ranks of a training."""

import argparse
from dataclasses import dataclass


@dataclass(frozen=True)
class Places:
    """A bundle of resources for each rank.

    Args:
        ranks: their number.
        cpus: of each, which are also its threads.
        gpus: of each: 1 with `--device cuda`, else 0.
        strategy: of Ray: SPREAD over nodes, PACK on few, or STRICT_SPREAD, STRICT_PACK.
        seconds: to wait for room, in which an autoscaler may add nodes.
    """

    ranks: int = 2
    cpus: int = 1
    gpus: int = 0
    strategy: str = "SPREAD"
    seconds: float = 600.0

    @classmethod
    def add_to(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--ranks", type=int, default=cls.ranks)
        parser.add_argument("--cpus", type=int, default=cls.cpus, help="of each rank")
        parser.add_argument("--gpus", type=int, default=cls.gpus, help="of each rank: 0 or 1")
        parser.add_argument("--strategy", default=cls.strategy, help="Ray's, of its placement")
        parser.add_argument("--seconds", type=float, default=cls.seconds, help="to wait for room")

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> "Places":
        return cls(parsed.ranks, parsed.cpus, parsed.gpus, parsed.strategy, parsed.seconds)
