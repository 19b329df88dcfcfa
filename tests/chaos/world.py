"""A service of the tests' own: API, workers, broker and database, each of which can be hurt."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import httpx
import psutil
import redis
from sqlalchemy import create_engine, text

from core.context import Context, open_context
from core.settings import load_settings
from core.urls import with_driver
from tests.chaos.cradle import Cradle
from tests.core.postgresql import PostgresServer
from tests.core.redis_server import RedisServer, running_redis
from tests.ports import free_port
from tests.worker.conftest import add_line

WORKERS = 2
LEASE_SECONDS = 2


@dataclass
class World:
    """On SQLite and a folder, or on PostgreSQL and Redis; `serve` runs API and worker together.

    A process that ends by itself, as the API does when it starts without a database, is started
    again by `mend`, as whatever runs a service would do.
    """

    folder: Path
    cradle: Cradle
    postgresql: PostgresServer | None = None
    serve: bool = False
    redis: RedisServer | None = field(default=None, init=False)
    api: int | None = field(default=None, init=False)
    workers: list[int] = field(default_factory=list, init=False)
    paused: set[int] = field(default_factory=set, init=False)
    strays: list[psutil.Process] = field(default_factory=list, init=False)  # of killed parents
    stopped: set[str] = field(default_factory=set, init=False)  # servers
    port: int = field(default_factory=free_port, init=False)

    def __enter__(self) -> "World":
        self._stack = ExitStack()
        self.folder.mkdir(parents=True)
        self.clock = self.folder / "clock"
        self.clock.write_text("0")
        urls: dict[str, str] = {}
        if self.postgresql:
            self.redis = self._stack.enter_context(running_redis(self.folder))
            urls = {"broker_url": self.redis.url, "database_url": self._new_database()}
        settings = load_settings(
            data_dir=self.folder / "data",
            lease_seconds=LEASE_SECONDS,
            max_attempts=100,
            checkpoint_seconds=0.3,
            worker_metrics_port=0,
            threads=1,
            **urls,
        )
        names = ("lease_seconds", "max_attempts", "checkpoint_seconds", "worker_metrics_port")
        self.environment = {f"CREDENCE_{n.upper()}": str(getattr(settings, n)) for n in names}
        self.environment |= {f"CREDENCE_{name.upper()}": url for name, url in urls.items()}
        self.environment |= {
            "CREDENCE_DATA_DIR": str(settings.data_dir),
            "CREDENCE_THREADS": "1",
            "CHAOS_CLOCK": str(self.clock),
            "PYTHONPATH": os.getcwd(),  # noqa: PTH109
        }
        self.context: Context = open_context(settings)
        self._stack.callback(self.context.close)
        self.dataset = add_line(self.context)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill_all()
        self.start_servers()  # the database is the others', too
        self._stack.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def mend(self) -> None:
        """Start what does not run; what is paused stays so."""
        if self.api is not None and self.cradle.poll(self.api) is not None:
            self.api = None
        if self.api is None:
            entry = "serve" if self.serve else "api"
            self.api = self._fork(entry, port=self.port)
        self.workers = [pid for pid in self.workers if self.cradle.poll(pid) is None]
        while not self.serve and len(self.workers) < WORKERS:
            self.workers.append(self._fork("worker"))

    def kill_api(self) -> None:
        if self.api is not None:
            self.strays += self._started_by_the_api()  # these end by themselves
            self.cradle.kill(self.api)
            self.api = None

    def kill_worker(self, index: int) -> None:
        if self.serve:
            for process in self._started_by_the_api():
                process.kill()
        elif self.workers:
            pid = self.workers.pop(index % len(self.workers))
            self.paused.discard(pid)
            self.cradle.kill(pid)

    def kill_all(self) -> None:
        self.kill_api()
        while self.workers:
            self.kill_worker(0)
        for process in self.strays:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(self.strays, timeout=10)

    def pause_worker(self, index: int) -> None:
        workers = self.workers or [process.pid for process in self._started_by_the_api()]
        if workers:
            pid = workers[index % len(workers)]
            os.kill(pid, signal.SIGSTOP)
            self.paused.add(pid)

    def wake_workers(self) -> None:
        for pid in self.paused:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.paused.clear()

    def stop_broker(self) -> None:
        if self.redis:
            self.redis.stop()
            self.stopped.add("broker")

    def stop_database(self) -> None:
        if self.postgresql:
            self.postgresql.stop()
            self.stopped.add("database")

    def start_servers(self) -> None:
        """Those that were stopped."""
        if self.redis and "broker" in self.stopped:
            self.redis.start()
        if self.postgresql and "database" in self.stopped:
            self.postgresql.start()
        self.stopped.clear()

    def empty_broker(self) -> None:
        """All messages are gone."""
        if self.redis is None:
            for path in (self.context.settings.data_dir / "queue" / "messages").iterdir():
                with suppress(FileNotFoundError):
                    path.unlink()
            return
        with suppress(redis.ConnectionError), redis.Redis.from_url(self.redis.url) as client:
            client.flushall()

    def set_clock(self, seconds: float) -> None:
        """For all processes of the service: a machine's clock was set."""
        staged = self.clock.with_suffix(".new")
        staged.write_text(str(seconds))
        staged.rename(self.clock)

    def wait_until(self, condition: Callable[[], bool], what: str, seconds: float = 90) -> bool:
        """Whether the condition came true in time; services that end meanwhile are restarted."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.mend()
            if condition():
                return True
            time.sleep(0.1)
        print(f"waited {seconds:g} s in vain for {what}")  # noqa: T201
        return False

    def answers(self) -> bool:
        """Whether the API does."""
        with suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/health/live", timeout=5).status_code == 200
        return False

    def log(self) -> str:
        """The end of what the processes have told."""
        return "".join(path.read_text()[-6000:] for path in sorted(self.folder.glob("*.log")))

    def _started_by_the_api(self) -> list[psutil.Process]:
        """The worker of `credence serve`; none while it is being started again."""
        if self.api is None:
            return []
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.api).children()
        return []

    def _fork(self, entry: str, **arguments: int) -> int:
        return self.cradle.fork(entry, self.folder / f"{entry}.log", self.environment, **arguments)

    def _new_database(self) -> str:
        assert self.postgresql
        name = f"chaos_{time.time_ns()}"
        engine = create_engine(with_driver(self.postgresql.url), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return self.postgresql.url.replace("/postgres?", f"/{name}?")


def remove(folder: Path) -> None:
    """What a world that came through leaves behind."""
    shutil.rmtree(folder, ignore_errors=True)
