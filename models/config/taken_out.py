"""Settings that were taken out: requests for them are refused, and stored ones are ignored.

A stored version that was trained with one of them keeps an ordinary posterior, and so it still
predicts. `LAST_RELEASE` was the last one with these settings.
"""

from typing import Any

LAST_RELEASE = "0.1"


def no_sharpening(method: Any) -> Any:
    """Drop `sharpening` false from the JSON of `bbb`.

    Raises:
        ValueError: if it is true.
    """
    if not isinstance(method, dict) or method.get("kind", "bbb") != "bbb":
        return method
    if method.get("sharpening"):
        raise ValueError(
            f"posterior sharpening was taken out after release {LAST_RELEASE}: leave sharpening out"
        )
    return {name: value for name, value in method.items() if name != "sharpening"}


def no_plateau(schedule: Any) -> Any:
    """
    Raises:
        ValueError: for the schedule "plateau".
    """
    if schedule == "plateau":
        raise ValueError(
            f"the schedule 'plateau' was taken out after release {LAST_RELEASE}: "
            "take 'cosine' or 'constant'"
        )
    return schedule


def upgraded(config: Any) -> Any:
    """The JSON of a stored `ModelConfig` without the settings that were taken out."""
    if not isinstance(config, dict):
        return config
    parts = {name: dict(config[name]) for name in ("method", "training") if config.get(name)}
    parts.get("method", {}).pop("sharpening", None)
    if parts.get("training", {}).get("schedule") == "plateau":
        parts["training"]["schedule"] = None
    return config | parts
