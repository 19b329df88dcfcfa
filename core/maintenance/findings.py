"""What a check of an installation finds."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How bad it is: a warning is for people to think about, and fails nothing."""

    GOOD = "good"
    WARNING = "warning"
    BROKEN = "broken"


@dataclass(frozen=True)
class Finding:
    """What was found, and what would be right where it is not."""

    state: State
    found: str
    advice: str = ""
    is_missing: bool = False  # nothing is wrong, but there is nothing yet to look into
