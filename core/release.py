"""Which release this is."""

from importlib.metadata import PackageNotFoundError, version


def release() -> str:
    """The installed version; "unknown" when run from a checkout that was never installed."""
    try:
        return version("credence")
    except PackageNotFoundError:
        return "unknown"
