"""Data sets from sources: read, recorded with what was read, and read again."""

import tempfile
from pathlib import Path

from core.clock import now
from core.datasets.dataset import Dataset, Provenance
from core.datasets.datasets import Datasets
from core.datasets.files.ingest import Given
from core.exceptions import Conflict, Invalid, UnsupportedFormat
from core.names import check_name
from core.settings import Settings
from core.sources import files, queries
from core.sources.budget import Budget
from core.sources.files import Fetched
from core.sources.rules import read_rules
from core.sources.secrets import read_secrets
from core.sources.source import QuerySource, Source, UriSource


class Sources:
    """What the caller of `datasets` may read, as the operator's settings say."""

    def __init__(self, settings: Settings, datasets: Datasets, scratch: Path, owner: str) -> None:
        """`owner` is who the data sets will belong to, and who may use a secret."""
        self._settings, self._datasets = settings, datasets
        self._scratch, self._owner = scratch, owner

    def add(
        self, name: str, source: Source, given: Given, refreshed_from: str | None = None
    ) -> tuple[Dataset, bool]:
        """Read a source and store it as a data set, as if what was read had been uploaded.

        The same bytes of the same source again return the existing data set, and False.

        Raises:
            Invalid: the source is closed, wrong or gone; the message says which.
            NotParseable, TooLarge, UnsupportedFormat, QuotaExceeded: as `Datasets.add`.
            Unavailable: host, bucket or database do not answer.
        """
        check_name(name)
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            read_at = now().isoformat()
            found = self._fetch(source, Path(folder), given)
            snapshot = {"read_at": read_at, "format": found.format} | found.snapshot
            request = source.model_dump(mode="json", exclude_none=True)
            provenance = Provenance(request, snapshot, refreshed_from)
            return self._datasets.add(
                name, found.media_type, found.path, given=given, provenance=provenance
            )

    def refresh(self, dataset_id: str) -> tuple[Dataset, bool]:
        """Read the source of a data set again: the next data set, or the same one.

        Raises:
            NotFound: there is no such data set.
            Conflict: it was uploaded; or its source is closed or gone meanwhile.
            others: as `add`.
        """
        before = self._datasets.get(dataset_id)
        if before.provenance is None:
            raise Conflict(f"data set {dataset_id} was uploaded: it has no source to read again")
        source = source_of(before.provenance)
        try:
            return self.add(before.name, source, before.given, dataset_id)
        except (Invalid, UnsupportedFormat) as error:
            raise Conflict(f"data set {dataset_id} cannot be refreshed: {error}") from error

    def _fetch(self, source: Source, folder: Path, given: Given) -> Fetched:
        settings = self._settings
        rules = read_rules(settings.sources)
        secrets = read_secrets(settings.source_secrets_file)
        budget = Budget(settings.max_dataset_bytes, settings.source_seconds)
        if isinstance(source, QuerySource):
            return queries.fetch(source, rules, secrets, self._owner, folder, budget)
        header = given.options.header is not False
        return files.fetch(source, rules, secrets, self._owner, folder, budget, header=header)


def source_of(provenance: Provenance) -> Source:
    """The source that a data set was read from."""
    kind = QuerySource if "query" in provenance.source else UriSource
    return kind.model_validate(provenance.source)
