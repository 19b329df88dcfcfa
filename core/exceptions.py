"""The exceptions of `core`. Every message may be shown to a user."""

from collections.abc import Sequence


class CredenceError(Exception):
    """Base of all errors of this package."""


class InvalidSetting(CredenceError):
    """Wrong settings; the process must not start. The message has a line for each."""


class NotFound(CredenceError):
    """There is no `kind` with this identifier, or the caller may not see it."""

    def __init__(self, kind: str, identifier: object) -> None:
        super().__init__(f"there is no {kind} {str(identifier)!r}")
        self.kind = kind
        self.identifier = str(identifier)


class Conflict(CredenceError):
    """The state of a thing does not allow the operation."""


class NotOwner(CredenceError):
    """The caller may see a thing, but not change it."""


class LimitReached(CredenceError):
    """The caller has reached a limit that is free again later, such as of queued jobs."""

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Invalid(CredenceError):
    """Wrong values.

    Args:
        errors: (path, message) pairs; a path is a JSON pointer ("/a/0") or a parameter's name.
    """

    def __init__(self, errors: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {message}" for path, message in errors))
        self.errors = list(errors)


class NotParseable(CredenceError):
    """Bytes that are not in their declared format."""


class TooLarge(CredenceError):
    """Something is larger than a limit. The message names the limit."""


class QuotaExceeded(TooLarge):
    """The caller's quota of stored bytes is used up. The message gives the quota."""


class WrongHost(CredenceError):
    """A request calls the service by a name that is not its own."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"this service is not {name[:100]!r}: call it by its own name, or add this one to "
            "CREDENCE_ALLOWED_HOSTS"
        )


class UnsupportedFormat(CredenceError):
    """An unknown format or encoding. The message lists the known ones."""


class Unavailable(CredenceError):
    """A service that this one needs, such as the database, does not answer now."""

    def __init__(self, message: str, retry_after_seconds: int = 5) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class LostClaim(CredenceError):
    """The job belongs to another attempt: the worker must drop its work and write nothing."""
