"""The version of this installation."""

from importlib.metadata import PackageNotFoundError, version


def release() -> str:
    """The installed version; "unknown" in a checkout that was never installed."""
    try:
        return version("credence-server")
    except PackageNotFoundError:
        return "unknown"
