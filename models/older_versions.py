"""What older versions wrote, and how it is read today.

Requests for settings that were taken out are refused. Stored versions whose posterior is an
ordinary one still predict, and the setting is ignored; those with members that share weights or
have a linear path around their layers, or with the likelihood "student", are refused, too.
"""

from typing import Any

LAST_RELEASE = "0.1"  # that had what was taken out


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


def as_plain_part(part: Any) -> Any:
    """Drop `sharing`, `networks` and `skip`, which parts of a network had.

    Raises:
        ValueError: for members with shared weights or a linear path.
    """
    if not isinstance(part, dict):
        return part
    if part.get("sharing", "none") != "none":
        raise ValueError(
            "members with shared weights (sharing 'rank_one') were taken out; the last release "
            f"that had them is {LAST_RELEASE}: leave out sharing and networks, so that each member "
            "has its own"
        )
    if part.get("skip"):
        raise ValueError(
            "the linear path around the hidden layers (skip) was taken out after release "
            f"{LAST_RELEASE}: leave skip out"
        )
    removed = ("sharing", "networks", "skip")
    return {name: value for name, value in part.items() if name not in removed}


def no_student(likelihood: Any) -> Any:
    """
    Raises:
        ValueError: for the likelihood "student", also of a stored version.
    """
    kind = likelihood.get("kind") if isinstance(likelihood, dict) else likelihood
    if kind == "student":
        raise ValueError(
            f"the likelihood 'student' was removed after release {LAST_RELEASE}.0: "
            "take 'mixture', whose three logistic components also have heavy tails"
        )
    return likelihood


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


def upgraded_config(config: Any) -> Any:
    """The JSON of a stored `ModelConfig` without the settings that were taken out."""
    if not isinstance(config, dict):
        return config
    parts = {name: dict(config[name]) for name in ("method", "training") if config.get(name)}
    parts.get("method", {}).pop("sharpening", None)
    if parts.get("training", {}).get("schedule") == "plateau":
        parts["training"]["schedule"] = None
    return config | parts


def upgraded_frame(frame: Any) -> Any:
    """A stored frame of a version that knew two scales, `is_log` or not, as one of today."""
    if not isinstance(frame, dict) or "is_log" not in frame:
        return frame
    kept = {name: value for name, value in frame.items() if name != "is_log"}
    scale = (
        {"kind": "log", "lower": 0.0, "offset": 0.0} if frame["is_log"] else {"kind": "identity"}
    )
    return kept | {"observation": {"scale": scale}}
