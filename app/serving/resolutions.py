"""What follows from a version and the options of a request alone, kept for the next request."""

from collections.abc import Hashable
from dataclasses import dataclass

from app.serving.batching import speed_key
from core.registry.registry import Version
from models.model import TrainedModel
from models.prediction.options import BatchOptions, ResolvedOptions

MAX_KNOWN = 256


@dataclass(frozen=True)
class Resolved:
    """Options with every default filled in, and what they cost.

    Args:
        asked: the options of the request.
        speed: the key for `Throughput`.
        per_sample: values of each sample of a row.
        unit: how many rows must be computed together, as in `Entry`.
    """

    asked: BatchOptions
    options: ResolvedOptions
    speed: Hashable
    per_sample: int
    unit: int | None


class Resolutions:
    """Resolves options. Clients repeat theirs, of which `validate_again` makes one object.

    The key is that object and not its value, so that nobody hashes and compares all of its fields.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], Resolved] = {}

    def find(self, version: Version, model: TrainedModel, asked: BatchOptions) -> Resolved:
        """
        Raises:
            InvalidInput, UnknownVariant: see `TrainedModel.resolve`.
        """
        key = (version.artifact_key, id(asked))
        known = self._known.get(key)
        if known is None or known.asked is not asked:  # which a number of another object may be
            known = self._known[key] = _resolved(version, model, asked)
            if len(self._known) > MAX_KNOWN:
                del self._known[next(iter(self._known))]
        return known


def _resolved(version: Version, model: TrainedModel, asked: BatchOptions) -> Resolved:
    options = model.resolve(asked)
    per_sample = model.values_per_sample(options)
    speed = speed_key(version.artifact_key, options, per_sample)
    return Resolved(asked, options, speed, per_sample, model.unit(options))
