"""The errors that `models` raises. Their messages are written for the user."""


class ModelError(ValueError):
    """Base of all errors of this package; `path` is a JSON pointer to the wrong value, or ""."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path


class InvalidData(ModelError):
    """The training data and the configuration do not fit together."""


class InvalidInput(ModelError):
    """A prediction has an input or an option that this model does not support."""


class UnknownVariant(InvalidInput):
    """No variant is stored for this pruning fraction."""


class Diverged(ModelError):
    """Training produced a number that is not finite; the message says which and what to change.

    `what` is only the first sentence, without advice.
    """

    @property
    def what(self) -> str:
        return self.message.split(". ")[0]


class CorruptArtifact(ModelError):
    """The files of a stored model do not match their description or their checksums."""


class Stopped(Exception):
    """Training was stopped between two mini-batches, after its checkpoint was written."""
