"""Which of the models in this process's metrics are deleted; read at each scrape."""

from collections.abc import Callable, Collection, Set

import structlog

from app.metrics.bounded_query import BoundedQuery
from core.exceptions import Unavailable

Versions = Set[tuple[str, int]]  # by model and number
Find = Callable[[Collection[str]], Versions]  # the versions of the models with these names

log = structlog.stdlib.get_logger(__name__)


class DeletedModels:
    """Compares names of models with those in the database.

    Args:
        names: of the models in this process's metrics.
        find: reads the database.
    """

    def __init__(self, names: Callable[[], Collection[str]], find: Find) -> None:
        self._query = BoundedQuery(lambda: self._read(names(), find))

    @staticmethod
    def _read(names: Collection[str], find: Find) -> tuple[Collection[str], Versions]:
        return names, find(names) if names else frozenset()

    def result(self) -> tuple[set[str], Versions | None]:
        """The deleted models, and the existing versions; nothing without the database."""
        try:
            names, versions = self._query.result()
        except (Unavailable, TimeoutError) as error:
            log.warning("metrics of deleted models stay", reason=str(error) or "no answer")
            return set(), None
        return {*names} - {model for model, _ in versions}, versions
