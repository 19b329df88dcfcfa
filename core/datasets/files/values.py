"""Whether a text looks like a value rather than a name: a number, a date or a time."""

import re

MAX_LENGTH = 40
NUMBER = re.compile(
    r"[^\w\s]{0,3}\s?[-+(]?\d[\d.,'\u00a0\u202f ]*([eE][-+]?\d+)?\)?\s?[^\d;|\t]{0,4}"
)
TIME = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ].*)?|\d{1,2}:\d\d(:\d\d.*)?")


def is_value(cell: str) -> bool:
    """Whether a cell looks like a number, a date or a time."""
    text = cell.strip()
    if len(text) > MAX_LENGTH:
        return False
    return bool(NUMBER.fullmatch(text) or TIME.fullmatch(text))
