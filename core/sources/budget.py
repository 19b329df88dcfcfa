"""How many bytes and seconds one source may take."""

import time
from dataclasses import dataclass, field

from core.exceptions import TooLarge

MAX_FILES = 10_000


@dataclass
class Budget:
    """Counts what was read.

    Args:
        max_bytes: of all files together, before they are decoded.
        seconds: from now on.
    """

    max_bytes: int
    seconds: float
    taken: int = 0
    _end: float = field(init=False)

    def __post_init__(self) -> None:
        self._end = time.monotonic() + self.seconds

    @property
    def left_seconds(self) -> float:
        """Raises `TooLarge` when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TooLarge(
                f"the source takes longer than CREDENCE_SOURCE_SECONDS={self.seconds:g} to be read"
            )
        return left

    def take(self, num_bytes: int) -> None:
        """Count bytes. Raises `TooLarge` if they are too many, or the time is over."""
        self.taken += num_bytes
        if self.taken > self.max_bytes:
            raise TooLarge(
                f"the source has more than {self.max_bytes} bytes: the limit is "
                "CREDENCE_MAX_DATASET_BYTES"
            )
        _ = self.left_seconds


def check_number(count: int) -> None:
    """Raise `TooLarge` for too many files."""
    if count > MAX_FILES:
        raise TooLarge(f"the source has more than {MAX_FILES} files: name a part of them")
