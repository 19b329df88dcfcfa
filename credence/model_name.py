"""Names of models and aliases: what the service takes, said before anything is uploaded."""

import re

_VALID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
MAX_SHOWN = 80


def problem(name: str) -> str | None:
    """What is wrong with a name, and one that is like it and right; None for a valid name."""
    if _VALID.fullmatch(name):
        return None
    near = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("._-")[:63] or "model"
    return (
        f"{name[:MAX_SHOWN]!r}: use lower-case letters, digits, '.', '_' and '-', such as {near!r}"
        + (" (at most 63 characters)" if len(name) > len(near) == 63 else "")
    )
