"""A fault: what it does, how often it is drawn, and to which installations it can happen."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from tests.chaos.traffic import Traffic
from tests.chaos.world import World


class Run(Protocol):
    """What a fault sees of the schedule that draws it."""

    world: World
    traffic: Traffic
    random: Random

    def pause(self, least: float, most: float) -> None:
        """Wait for a random time between these seconds."""

    def hurt(self) -> None:
        """From now on, measure the time until any job goes on."""


def anywhere(world: World) -> bool:
    """It can happen to all."""
    return True


def on_servers(world: World) -> bool:
    """Only where broker and database are servers."""
    return world.postgresql is not None


def forked(world: World) -> bool:
    """Only where all processes are forks: the worker of `credence serve` is started anew."""
    return not world.serve


@dataclass(frozen=True)
class Fault:
    """One kind of mishap or work.

    Args:
        weight: how often it is drawn, beside others.
    """

    do: Callable[[Run], None]
    weight: int
    fits: Callable[[World], bool] = anywhere
