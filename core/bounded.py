"""Dictionaries of what a process has learned, which do not grow for ever."""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def keep(known: dict[K, V], key: K, value: V, most: int) -> None:
    """Set the value of a key. When there are more than `most`, forget the half that came first.

    Any thread may call it, and read meanwhile.
    """
    known[key] = value
    if len(known) > most:
        for oldest in list(known)[: most // 2]:
            known.pop(oldest, None)
