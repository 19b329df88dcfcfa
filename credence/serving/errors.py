"""Why a service does not run."""


class CannotStart(Exception):  # noqa: N818 - it names the outcome
    """The service could not be started; the message is ready for a user."""
