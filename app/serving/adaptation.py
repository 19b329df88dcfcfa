"""The levels of adaptive intervals, from the labels of a version."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

import anyio
from anyio import to_thread

from core.exceptions import Unavailable
from core.registry.registry import Version
from models.evaluation.adaptive import Adapted, Labels, adapt
from models.model import TrainedModel
from models.prediction.options import ResolvedOptions

Read = Callable[[str, int], Labels]
"""Model and version → its labels."""

FRESH_SECONDS = 1.0  # a later question reads the labels again
TIMEOUT_SECONDS = 1.0
MAX_READERS = 4  # threads that may wait for a database that hangs
MAX_KNOWN = 256  # results

Key = tuple[str, float, tuple[float, ...]]


@dataclass(frozen=True)
class _Known:
    """A result, and the labels that it follows from."""

    labels: Labels
    adapted: tuple[Adapted, ...]
    read_at: float


class Adaptation:
    """Adapts levels to labels. For use on the event loop.

    A result is used for `FRESH_SECONDS`, and while the database is away without a limit.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._known: dict[Key, _Known] = {}
        self._threads = anyio.CapacityLimiter(MAX_READERS)

    async def resolve(
        self, version: Version, model: TrainedModel, options: ResolvedOptions
    ) -> ResolvedOptions:
        """The options with the levels of adaptive intervals, if they ask for some.

        Raises:
            Unavailable: the database does not answer, and the labels are not known yet.
        """
        if "adaptive" not in options.interval_kinds or not options.intervals:
            return options
        key = (version.artifact_key, options.prune, options.intervals)
        known = self._known.get(key)
        if known is None or monotonic() - known.read_at >= FRESH_SECONDS:
            known = await self._refreshed(version, model, options, known)
            self._known = {**_newest(self._known), key: known}
        return replace(options, adapted=known.adapted)

    def artifacts(self) -> Collection[str]:
        """The artifacts with a result."""
        return {artifact for artifact, *_ in self._known}

    def forget(self, artifacts: Collection[str]) -> None:
        """Drop the results, and the labels, of these artifacts."""
        self._known = {key: known for key, known in self._known.items() if key[0] not in artifacts}

    async def _refreshed(
        self,
        version: Version,
        model: TrainedModel,
        options: ResolvedOptions,
        known: _Known | None,
    ) -> _Known:
        read_at, read = monotonic(), partial(self._read, version.model, version.version)
        try:
            with anyio.fail_after(TIMEOUT_SECONDS):
                labels = await self._in_thread(read)
        except (TimeoutError, Unavailable):
            if known is None:
                raise Unavailable("the database does not tell the labels in time") from None
            return known
        if known is not None and known.labels == labels:
            return replace(known, read_at=read_at)
        work = partial(adapted_levels, model, options, labels)
        return _Known(labels, await to_thread.run_sync(work, limiter=self._threads), read_at)

    async def _in_thread(self, read: Callable[[], Labels]) -> Labels:
        return await to_thread.run_sync(read, abandon_on_cancel=True, limiter=self._threads)


def adapted_levels(
    model: TrainedModel, options: ResolvedOptions, labels: Labels
) -> tuple[Adapted, ...]:
    """The adapted levels of the requested intervals; () without labels."""
    reference = model.variant(options.prune).reference
    if reference is None or not labels.scores:
        return ()
    return tuple(adapt(reference, labels, options.intervals))


def _newest(known: dict[Key, _Known]) -> dict[Key, _Known]:
    if len(known) < MAX_KNOWN:
        return known
    return dict(sorted(known.items(), key=lambda item: item[1].read_at)[1:])
