"""The limit on the decoded size of a data set."""

from core.exceptions import TooLarge


def check_size(num_bytes: int, max_bytes: int, what: str) -> None:
    """Raise `TooLarge` if `what`, decoded, takes more than `max_bytes`."""
    if num_bytes > max_bytes:
        raise TooLarge(
            f"{what} takes {num_bytes} bytes once decoded: the limit CREDENCE_MAX_DATASET_BYTES is "
            f"{max_bytes}"
        )
