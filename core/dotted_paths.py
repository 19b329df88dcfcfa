"""Settings by dotted paths, as the command line's `--set` names them."""

from core.database.schema import Json


def flatten(values: Json, prefix: str = "") -> Json:
    """{"kl": {"weight": 1}} → {"kl.weight": 1}"""
    flat: Json = {}
    for name, value in values.items():
        path = f"{prefix}{name}"
        flat |= flatten(value, f"{path}.") if isinstance(value, dict) else {path: value}
    return flat
