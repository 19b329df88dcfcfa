"""A number with its noun: `1 row`, `3 rows`."""


def counted(number: int, noun: str) -> str:
    """The number and the noun, with an s unless there is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
