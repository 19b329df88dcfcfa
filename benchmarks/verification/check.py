"""A figure of a simulation, and what it must be."""

from dataclasses import dataclass
from typing import Literal

Scale = Literal["short", "full"]
"""`short` simulations are for a quick look: seconds each. `full` ones are for the table."""


@dataclass(frozen=True)
class Check:
    """A measured figure that must lie between two bounds.

    Args:
        what: what was simulated, and which figure it is.
        expected: what it must be, for people.
        lowest, highest: the bounds, both included.
        noted: whether the version that was simulated has a note that gives this figure. A figure
            outside its bounds is then no fault: the user was told.
    """

    what: str
    expected: str
    measured: float
    lowest: float
    highest: float
    noted: bool = False

    @property
    def holds(self) -> bool:
        """Whether the figure is within its bounds; NaN is not."""
        return self.lowest <= self.measured <= self.highest

    @property
    def verdict(self) -> str:
        """`holds`, `noted` or `fails`."""
        if self.holds:
            return "holds"
        return "noted" if self.noted else "fails"
