"""Why a service does not run."""


class CannotStart(Exception):
    """The service could not be started; the message is ready for a user."""
