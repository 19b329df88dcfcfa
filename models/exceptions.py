"""What `models` raises: one small hierarchy, every message ready for a user."""


class ModelError(ValueError):
    """Base of all errors of this package; `path` is a JSON pointer to the culprit, or ""."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path


class InvalidData(ModelError):
    """Training data or a configuration that cannot work together."""


class InvalidInput(ModelError):
    """A prediction input or option that this model cannot answer."""


class UnknownVariant(InvalidInput):
    """A pruning fraction for which no variant is stored."""


class Diverged(ModelError):
    """Training produced a number that is not finite; the message says which and what to change."""


class CorruptArtifact(ModelError):
    """A stored model whose files do not match their description or checksums."""


class Stopped(Exception):
    """Training was asked to stop between two mini-batches; its checkpoint is complete."""
