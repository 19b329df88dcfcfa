"""The one limit on how large a data set may become once decoded."""

from core.exceptions import TooLarge


def check_size(num_bytes: int, max_bytes: int, what: str) -> None:
    """Raise `TooLarge` when `what` takes more than `max_bytes` in memory."""
    if num_bytes > max_bytes:
        raise TooLarge(
            f"{what} takes {num_bytes} bytes once decoded: the limit CREDENCE_MAX_DATASET_BYTES is "
            f"{max_bytes}"
        )
