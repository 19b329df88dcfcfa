"""Both databases, empty and migrated; data sets, jobs and a registry on top of them."""

import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy import create_engine, text

from core.access.callers import Caller, View
from core.clock import now
from core.context import Context, open_context
from core.database.database import Database, migrate
from core.database.schema import Base, VersionRow
from core.datasets.datasets import Datasets
from core.jobs.jobs import Claim, Job, Jobs
from core.jobs.results import Results
from core.jobs.specs import PredictSpec, TrainSpec
from core.registry.registry import Registry
from core.settings import Settings, load_settings
from core.storage import ArtifactStore, DirectoryStore
from core.storage.cache import Cache
from core.storage.s3 import S3Store
from core.urls import with_driver
from models.config import ModelConfig
from tests.core.postgresql import running_postgresql
from tests.core.redis_server import RedisServer, running_redis
from tests.core.s3 import S3Server, running_moto, running_rclone


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file, to be copied: that is faster than to migrate for each test."""
    path = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    database = Database(f"sqlite:///{path}")
    migrate(database)
    database.dispose()  # the last connection brings the log into the file
    return path


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    with running_postgresql() as url:
        yield with_driver(url)


def new_postgresql(server: str, name: str) -> str:
    """The URL of a new, empty database there."""
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"DROP DATABASE IF EXISTS {name}"))
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")


@pytest.fixture(scope="session")
def migrated_postgresql(postgresql_url: str) -> Iterator[Database]:
    database = Database(postgresql_url)
    migrate(database)
    yield database
    database.dispose()


ON_A_SERVER = pytest.param("postgresql", marks=pytest.mark.stack)


@pytest.fixture(params=["sqlite", ON_A_SERVER])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "postgresql":
        yield _emptied(request.getfixturevalue("migrated_postgresql"))
        return
    path = shutil.copy(request.getfixturevalue("migrated_sqlite"), tmp_path / "credence.db")
    database = Database(f"sqlite:///{path}")
    yield database
    database.dispose()


def _emptied(database: Database) -> Database:
    with database.begin() as session:
        for table in reversed(Base.metadata.sorted_tables):
            session.execute(table.delete())
    return database


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(data_dir=tmp_path / "data")


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    opened = open_context(load_settings(data_dir=tmp_path / "data"))
    yield opened
    opened.close()


def queue(context: Context, model: str = "square") -> str:
    """The id of a job to train on two rows."""
    dataset, _ = context.datasets.add_columns("small", {"x": [1.0, 2.0], "y": [1.0, 4.0]})
    spec = TrainSpec(model=model, dataset=dataset.id, config=ModelConfig(target="y"))
    return context.jobs.create(spec).id


@pytest.fixture
def directory_store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "artifacts")


@pytest.fixture
def store(request: pytest.FixtureRequest, database: Database) -> ArtifactStore:
    """What comes with the database: a directory on a laptop, a bucket in production."""
    name = "directory_store" if database.is_sqlite else "rclone_store"
    found: ArtifactStore = request.getfixturevalue(name)
    return found


@pytest.fixture(scope="session")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_rclone(tmp_path_factory.mktemp("buckets")) as server:
        yield server


@pytest.fixture(scope="session")
def moto() -> Iterator[S3Server]:
    with running_moto() as server:
        yield server


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def rclone_store(rclone: S3Server, tmp_path: Path) -> S3Store:
    return S3Store(rclone.new_bucket(), Cache(tmp_path / "cache", 2**20))


@pytest.fixture
def moto_store(moto: S3Server, tmp_path: Path) -> S3Store:
    return S3Store(moto.new_bucket(), Cache(tmp_path / "cache", 2**20))


BUCKETS = [pytest.param(name, marks=pytest.mark.stack) for name in ("rclone", "moto")]


@pytest.fixture(params=["directory", *BUCKETS])
def any_store(request: pytest.FixtureRequest) -> ArtifactStore:
    found: ArtifactStore = request.getfixturevalue(f"{request.param}_store")
    return found


@pytest.fixture
def datasets(database: Database, store: ArtifactStore) -> Datasets:
    return Datasets(database, store)


@pytest.fixture
def jobs(database: Database) -> Jobs:
    return Jobs(database)


@pytest.fixture
def registry(database: Database, store: ArtifactStore) -> Registry:
    return Registry(database, store)


@pytest.fixture
def results(jobs: Jobs, store: ArtifactStore) -> Results:
    return Results(jobs, store)


@pytest.fixture
def dataset_id(datasets: Datasets) -> str:
    dataset, _ = datasets.add_columns("small", {"x": [1.0, 2.0, 3.0], "y": [1.0, 4.0, 9.0]})
    return dataset.id


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    """What a training leaves: the folder of a model."""
    path = tmp_path / "artifact"
    path.mkdir()
    (path / "model.json").write_text("{}")
    return path


@pytest.fixture
def spec(dataset_id: str) -> TrainSpec:
    return TrainSpec(model="square", dataset=dataset_id, config=ModelConfig(target="y"))


@pytest.fixture
def job(jobs: Jobs, spec: TrainSpec) -> Job:
    return jobs.create(spec)


def owner(name: str, **more: Any) -> Caller:
    """Someone who sees what they own, and what is everybody's."""
    return Caller(View(name, sees_all=False), actor=name, **more)


def predict_spec(dataset: str, chunk_rows: int = 10) -> PredictSpec:
    return PredictSpec(
        model="square",
        dataset=dataset,
        version=3,
        samples=100,
        seed=7,
        sampler="monte_carlo",
        chunk_rows=chunk_rows,
    )


@pytest.fixture
def batch(jobs: Jobs, dataset_id: str) -> Job:
    """35 rows in chunks of 10: three whole ones and one of 5."""
    return jobs.create_batch(predict_spec(dataset_id), 35)


T = TypeVar("T")


def at_once(work: Callable[[int], T], number: int) -> list[T]:
    """What each of so many threads returns, by its index; the first error is raised."""
    start = threading.Barrier(number)

    def run(index: int) -> T:
        start.wait()
        return work(index)

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(run, range(number)))


LEASE = 60.0


def claimed(jobs: Jobs, job_id: str, worker: str = "worker-1") -> Claim:
    claim = jobs.claim(job_id, worker, LEASE)
    assert claim is not None
    return claim


def states(jobs: Jobs, job: Job) -> list[str]:
    """The states that a job has had, by its events."""
    return [event.data["status"] for event in jobs.events(job.id) if event.type == "state"]


def statuses(jobs: Jobs, whole: Job) -> list[str]:
    return [part.status.value for part in jobs.parts(whole.id)]


NAMES = ("log_likelihood", "squared_error", "mae", "crps", "epistemic_share", "pit", "uncertainty")


def version_row(number: int, **description: Any) -> VersionRow:
    """A version of the model `square`."""
    return VersionRow(
        model="square",
        version=number,
        description=description,
        dataset="ds_1",
        job="job_1",
        artifact_key=f"models/square/{number}",
        created_at=now(),
    )
