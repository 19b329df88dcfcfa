"""What `core` raises: one hierarchy, no HTTP in it, every message ready for a user."""

from collections.abc import Sequence


class CredenceError(Exception):
    """Base of all errors of this package; `str` of it may be shown to a user."""


class InvalidSetting(CredenceError):
    """Settings with which nothing may start; the message has a line for each."""


class NotFound(CredenceError):
    """There is no `kind` that is called `identifier`."""

    def __init__(self, kind: str, identifier: object) -> None:
        super().__init__(f"there is no {kind} {str(identifier)!r}")
        self.kind = kind
        self.identifier = str(identifier)


class Conflict(CredenceError):
    """The state of a thing does not allow what was asked."""


class NotOwner(CredenceError):
    """Whoever asks may see a thing, and not change it."""


class LimitReached(CredenceError):
    """More than a caller may ask for now; later it may."""

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Invalid(CredenceError):
    """Understood but wrong: `errors` are (path, message), a path being "/a/0" or a parameter."""

    def __init__(self, errors: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {message}" for path, message in errors))
        self.errors = list(errors)


class NotParseable(CredenceError):
    """Bytes that are not in the format they claim to be in."""


class TooLarge(CredenceError):
    """More than a limit allows; the message names the limit."""


class QuotaExceeded(TooLarge):
    """More than a caller may keep; the message says how much that is."""


class UnsupportedFormat(CredenceError):
    """A media type that nobody here reads; the message lists those that are."""


class Unavailable(CredenceError):
    """A service that this one needs does not answer now."""

    def __init__(self, message: str, retry_after_seconds: int = 5) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class LostClaim(CredenceError):
    """The job belongs to another attempt by now: drop the work, write nothing."""
