"""Everything that the API and the worker share, opened once per process."""

from dataclasses import dataclass

from core.checkpoints import Checkpoints
from core.database import Database, migrate
from core.datasets import Datasets
from core.feedback import Feedback
from core.jobs import Jobs
from core.queue import Queue
from core.registry import Registry
from core.results import Results
from core.scratch import Scratch
from core.settings import Settings
from core.storage import ArtifactStore, open_store
from core.stored_predictions import StoredPredictions
from core.workers import Workers


@dataclass(frozen=True)
class Context:
    """The services of one process."""

    settings: Settings
    scratch: Scratch
    database: Database
    store: ArtifactStore
    datasets: Datasets
    jobs: Jobs
    registry: Registry
    results: Results
    checkpoints: Checkpoints
    queue: Queue
    workers: Workers
    stored_predictions: StoredPredictions
    feedback: Feedback

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
    jobs = Jobs(database)
    scratch = Scratch(settings.data_dir / "scratch")
    scratch.remove_leftovers()
    return Context(
        settings=settings,
        scratch=scratch,
        database=database,
        store=store,
        datasets=Datasets(database, store, settings.max_dataset_bytes, scratch.path),
        jobs=jobs,
        registry=Registry(database, store),
        results=Results(jobs, store),
        checkpoints=Checkpoints(jobs, store),
        queue=Queue(settings),
        workers=Workers(database),
        stored_predictions=StoredPredictions(database, settings.max_stored_bytes),
        feedback=Feedback(database, settings.feedback_rows),
    )
