"""Everything that the API and the worker share, opened once per process."""

from dataclasses import dataclass, replace
from typing import Any

from core.access.audit import Audit
from core.access.callers import SERVICE, Caller
from core.access.idempotency import Replies
from core.access.shares import Shares
from core.database.database import Database, migrate
from core.datasets.datasets import Datasets
from core.jobs.checkpoints import Checkpoints
from core.jobs.jobs import Jobs
from core.jobs.queue import Queue
from core.jobs.results import Results
from core.jobs.workers import Workers
from core.predictions.feedback import Feedback
from core.predictions.stored_predictions import StoredPredictions
from core.process.scratch import Scratch
from core.registry.registry import Registry
from core.settings import Settings
from core.storage import ArtifactStore, open_store


@dataclass(frozen=True)
class Context:
    """The services of one process, as its `caller` sees them."""

    settings: Settings
    scratch: Scratch
    database: Database
    store: ArtifactStore
    caller: Caller
    datasets: Datasets
    jobs: Jobs
    registry: Registry
    results: Results
    checkpoints: Checkpoints
    queue: Queue
    workers: Workers
    stored_predictions: StoredPredictions
    feedback: Feedback
    shares: Shares
    replies: Replies
    audit: Audit

    def for_caller(self, caller: Caller) -> "Context":
        """The same services, for somebody who does not see everything."""
        return replace(
            self, **_bound(self.settings, self.database, self.store, self.scratch, caller)
        )

    def close(self) -> None:
        """Close the connections, and remove what was temporary."""
        self.queue.close()
        self.database.dispose()
        self.scratch.close()


def open_context(settings: Settings) -> Context:
    """Create the data directory, bring the schema up to date and connect the services.

    Raises:
        InvalidSetting: when the data directory cannot be created.
        Unavailable: when the database does not answer.
    """
    settings.prepare_data_dir()
    database = Database(settings.sqlalchemy_url)
    migrate(database)
    store = open_store(settings)
    scratch = Scratch(settings.data_dir / "scratch")
    scratch.remove_leftovers()
    bound = _bound(settings, database, store, scratch, SERVICE)
    return Context(
        settings=settings,
        scratch=scratch,
        database=database,
        store=store,
        checkpoints=Checkpoints(bound["jobs"], store),
        queue=Queue(settings),
        workers=Workers(database),
        replies=Replies(database),
        audit=Audit(database),
        **bound,
    )


def _bound(
    settings: Settings, database: Database, store: ArtifactStore, scratch: Scratch, caller: Caller
) -> dict[str, Any]:
    """What answers to a caller: whatever has an owner."""
    jobs = Jobs(database, caller)
    return {
        "caller": caller,
        "datasets": Datasets(database, store, settings.max_dataset_bytes, scratch.path, caller),
        "jobs": jobs,
        "registry": Registry(database, store, caller),
        "results": Results(jobs, store),
        "stored_predictions": StoredPredictions(database, settings.max_stored_bytes, caller),
        "feedback": Feedback(database, settings.feedback_rows, caller),
        "shares": Shares(database, caller),
    }
