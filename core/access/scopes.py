"""What a key or a token permits."""

from enum import StrEnum


class Scope(StrEnum):
    """What a key permits; each scope includes those before it."""

    PREDICT = "predict"
    TRAIN = "train"
    ADMIN = "admin"

    def includes(self, other: "Scope") -> bool:
        """Whether this scope is the other or a wider one."""
        order = list(Scope)
        return order.index(self) >= order.index(other)
