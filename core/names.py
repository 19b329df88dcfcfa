"""Names that users give, identifiers that the service gives, and paths of settings."""

import os
import re
import secrets
import socket
from collections.abc import Collection, Mapping
from typing import Any

from core.exceptions import Invalid, NotFound

MODEL_NAME = r"[a-z0-9][a-z0-9._-]{0,62}"
MAX_NAME_LENGTH = 256  # of a data set or a column, as `models.config.ColumnName`

_MODEL_NAME = re.compile(MODEL_NAME)
_IDENTIFIER = re.compile(r"[A-Za-z0-9._-]{1,128}")
# C0, DEL, C1, line and paragraph separators, and halves of surrogate pairs (not encodable)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def new_id(prefix: str) -> str:
    """A new identifier: the prefix and 96 random bits."""
    return f"{prefix}_{secrets.token_hex(12)}"


def new_worker_id() -> str:
    """A name that no other worker has or had: where it was made, and 24 random bits."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


def dotted_paths(
    values: dict[str, Any], prefix: str = "", whole: Collection[str] = ()
) -> dict[str, Any]:
    """Values by dotted path: {"kl": {"weight": 1}} → {"kl.weight": 1}.

    Args:
        whole: paths whose dictionaries are kept as values.
    """
    paths: dict[str, Any] = {}
    for name, value in values.items():
        path = f"{prefix}{name}"
        is_value = not isinstance(value, dict) or path in whole
        paths |= {path: value} if is_value else dotted_paths(value, f"{path}.", whole)
    return paths


def nested(paths: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `dotted_paths`: {"kl.weight": 1} → {"kl": {"weight": 1}}."""
    found: dict[str, Any] = {}
    for path, value in paths.items():
        *parents, last = path.split(".")
        inner = found
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = value
    return found


def check_identifier(kind: str, identifier: str) -> str:
    """Return `identifier`, or raise `NotFound` when it does not have the form of one."""
    if not _IDENTIFIER.fullmatch(identifier):
        raise NotFound(kind, identifier[:128])
    return identifier


def check_model_name(name: str, path: str = "/model") -> str:
    """Return `name`, or raise `Invalid` when it does not match the contract's pattern."""
    if not _MODEL_NAME.fullmatch(name):
        raise Invalid([(path, name_advice(name))])
    return name


def name_advice(name: str) -> str:
    """What a name that is no model's or alias's would have to be, with one that is like it."""
    near = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("._-")[:63] or "model"
    return f"{name[:80]!r}: use lower-case letters, digits, '.', '_' and '-', such as {near!r}" + (
        " (at most 63 characters)" if len(name) > len(near) == 63 else ""
    )


def model_name_of(data_name: str) -> str:
    """A valid model name from the name of a data set: `Concrete (v2).csv` becomes `concrete-v2`."""
    stem = data_name.partition(".")[0].lower()
    return re.sub(r"[^a-z0-9]+", "-", stem).strip("-")[:63] or "model"


def check_alias(alias: str, path: str = "/alias") -> str:
    """Return `alias`, or raise `Invalid`. A number is not an alias: `3` means version 3."""
    if not _MODEL_NAME.fullmatch(alias):
        raise Invalid([(path, name_advice(alias))])
    if alias.isdecimal():
        raise Invalid([(path, f"the alias {alias!r} would read as a version number: add a letter")])
    return alias


def check_name(name: str, path: str = "name") -> str:
    """Return `name`, or raise `Invalid` when it is empty, too long or not printable."""
    if problem := name_problem(name):
        raise Invalid([(path, problem)])
    return name


def name_problem(name: str) -> str | None:
    """What is wrong with a free name, or None."""
    if not name.strip():
        return "is empty: give it a name"
    if len(name) > MAX_NAME_LENGTH:
        return f"has {len(name)} characters: give at most {MAX_NAME_LENGTH}"
    if found := _CONTROL.search(name):
        return f"holds the control character U+{ord(found[0]):04X}: leave it out"
    return None
