"""The services that the API and the worker share, opened once per process."""

from dataclasses import dataclass, replace
from functools import cached_property

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
from core.jobs.row_scores import RowScoreFiles
from core.jobs.workers import Workers
from core.predictions.feedback import Feedback
from core.predictions.stored_predictions import StoredPredictions
from core.process.memory_budget import MemoryBudget
from core.process.scratch import Scratch
from core.registry.registry import Registry
from core.schedules.schedules import Schedules
from core.schedules.starts import Starts
from core.search import Search
from core.settings import Settings
from core.sources.reading import Sources
from core.storage import ArtifactStore, open_store
from core.webhooks.receivers import Rules, read_rules
from core.webhooks.webhooks import Webhooks


@dataclass(frozen=True)
class Context:
    """The services of one process, restricted to what `caller` may see."""

    settings: Settings
    scratch: Scratch
    database: Database
    store: ArtifactStore
    queue: Queue
    memory: MemoryBudget
    caller: Caller = SERVICE

    @cached_property
    def datasets(self) -> Datasets:
        max_bytes, folder = self.settings.max_dataset_bytes, self.scratch.path
        return Datasets(self.database, self.store, max_bytes, folder, self.caller, self.memory)

    @cached_property
    def sources(self) -> Sources:
        return Sources(self.settings, self.datasets, self.scratch.path, self.caller.owner)

    @cached_property
    def jobs(self) -> Jobs:
        return Jobs(self.database, self.caller)

    @cached_property
    def registry(self) -> Registry:
        return Registry(self.database, self.store, self.caller)

    @cached_property
    def search(self) -> Search:
        return Search(self.database, self.caller)

    @cached_property
    def schedules(self) -> Schedules:
        return Schedules(self.database, self.caller)

    @cached_property
    def starts(self) -> Starts:
        return Starts(self.database)

    @cached_property
    def results(self) -> Results:
        return Results(self.jobs, self.store)

    @cached_property
    def row_scores(self) -> RowScoreFiles:
        return RowScoreFiles(self.store)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.jobs, self.store)

    @cached_property
    def workers(self) -> Workers:
        return Workers(self.database)

    @cached_property
    def stored_predictions(self) -> StoredPredictions:
        return StoredPredictions(self.database, self.settings.max_stored_bytes, self.caller)

    @cached_property
    def feedback(self) -> Feedback:
        return Feedback(self.database, self.settings.feedback_rows, self.caller)

    @cached_property
    def shares(self) -> Shares:
        return Shares(self.database, self.caller)

    @cached_property
    def webhook_rules(self) -> Rules:
        """The receivers that may be reached."""
        return read_rules(self.settings.webhooks)

    @cached_property
    def webhooks(self) -> Webhooks:
        return Webhooks(self.database, self.webhook_rules, self.caller)

    @cached_property
    def replies(self) -> Replies:
        return Replies(self.database)

    @cached_property
    def audit(self) -> Audit:
        return Audit(self.database)

    def for_caller(self, caller: Caller) -> "Context":
        """The same services, restricted to what `caller` may see."""
        return replace(self, caller=caller)

    def close(self) -> None:
        """Close the connections and remove the scratch folder."""
        self.queue.close()
        self.database.dispose()
        self.scratch.close()


def open_context(settings: Settings) -> Context:
    """Create the data directory, bring the schema up to date and connect the services.

    Raises:
        InvalidSetting: the data directory cannot be created.
        Unavailable: the database does not answer.
    """
    settings.prepare_data_dir()
    database = Database(settings.sqlalchemy_url)
    migrate(database)
    store = open_store(settings)
    scratch = Scratch(settings.data_dir / "scratch")
    scratch.remove_leftovers()
    memory = MemoryBudget(settings.memory_bytes)
    return Context(settings, scratch, database, store, Queue(settings), memory)
