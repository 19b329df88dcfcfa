"""A service of the tests' own: APIs, workers, broker and database, each of which can be hurt."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
import psutil
import redis
from sqlalchemy import create_engine, text

from core.clock import now
from core.context import Context, open_context
from core.settings import load_settings
from core.urls import with_driver
from tests.chaos.cradle import Cradle
from tests.chaos.proxy import Proxy, to_port, to_socket
from tests.core.postgresql import PostgresServer
from tests.core.redis_server import RedisServer, running_redis
from tests.core.webhooks.receiving import answer, receiver
from tests.waiting import PATIENCE, free_port, slowness
from tests.worker.conftest import add_line

WORKERS = 2
GIVEN = ("lease_seconds", "max_attempts", "checkpoint_seconds", "worker_metrics_port")


@dataclass
class Replica:
    """One API. `life` grows when it is killed; in `loaded_in` it has answered with the model."""

    port: int = field(default_factory=free_port)
    pid: int | None = None
    life: int = 0
    loaded_in: int = -1

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


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
    num_replicas: int = 1
    # A renewal that comes late costs a job its worker.
    lease_seconds: int = field(default_factory=lambda: round(2 * slowness()), init=False)
    offset: timedelta = field(default=timedelta(), init=False)  # of the service's clock
    is_ready: bool = field(default=False, init=False)  # has what each schedule begins with
    mean: list[float] | None = field(default=None, init=False)  # that the steady model predicts
    redis: RedisServer | None = field(default=None, init=False)
    proxies: dict[str, Proxy] = field(default_factory=dict, init=False)
    replicas: list[Replica] = field(default_factory=list, init=False)
    workers: list[int] = field(default_factory=list, init=False)
    paused: set[int] = field(default_factory=set, init=False)
    strays: list[psutil.Process] = field(default_factory=list, init=False)  # of killed parents
    stopped: set[str] = field(default_factory=set, init=False)  # servers

    def __enter__(self) -> "World":
        self._stack = ExitStack()
        self.folder.mkdir(parents=True)
        self.replicas = [Replica() for _ in range(self.num_replicas)]
        self.clock = self.folder / "clock"
        self.clock.write_text("0")
        self.lake = self.folder / "lake"
        self.lake.mkdir()
        self.write_source(0)
        self.receiver = self._stack.enter_context(receiver())
        self.receiver.respond = _respond_slowly
        self.receiver_url = f"http://127.0.0.1:{self.receiver.port}"
        # One client, since a new one reads all certificates; a connection of its own per request.
        self.http = self._stack.enter_context(
            httpx.Client(limits=httpx.Limits(max_keepalive_connections=0))
        )
        direct, through = self._servers() if self.postgresql else ({}, {})
        doors = {"sources": f"file://{self.lake}/", "webhooks": f"private+{self.receiver_url}"}
        settings = load_settings(
            data_dir=self.folder / "data",
            lease_seconds=self.lease_seconds,
            max_attempts=100,
            checkpoint_seconds=0.3,
            worker_metrics_port=0,
            threads=1,
            **doors,
            **direct,
        )
        values = {name: str(getattr(settings, name)) for name in GIVEN}
        values |= {"data_dir": str(settings.data_dir), "threads": "1", **doors, **through}
        self.environment = {f"CREDENCE_{name.upper()}": value for name, value in values.items()}
        self.environment |= {
            "CHAOS_CLOCK": str(self.clock),
            "PYTHONPATH": os.getcwd(),  # noqa: PTH109
        }
        self.context: Context = open_context(settings)
        self._stack.callback(self.context.close)
        self.dataset = add_line(self.context)
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_all()
        self.start_servers()  # the database is the others', too
        self._stack.close()

    # processes

    def mend(self) -> None:
        """Start what does not run; what is paused stays so."""
        for replica in self.replicas:
            if replica.pid is not None and self.cradle.poll(replica.pid) is not None:
                replica.pid = None
            if replica.pid is None:
                entry = "serve" if self.serve else "api"
                replica.pid = self._fork(entry, port=replica.port)
        self.workers = [pid for pid in self.workers if self.cradle.poll(pid) is None]
        while not self.serve and len(self.workers) < WORKERS:
            self.workers.append(self._fork("worker"))

    def kill_api(self, index: int) -> None:
        replica = self.replicas[index % len(self.replicas)]
        replica.life += 1
        if replica.pid is not None:
            self.strays += self._started_by(replica)  # these end by themselves
            pid, replica.pid = replica.pid, None
            self.cradle.kill(pid)
            replica.life += 1  # it may have answered once more

    def kill_worker(self, index: int) -> None:
        if self.serve:
            for process in self._started_by(self.replicas[0]):
                process.kill()
        elif self.workers:
            pid = self.workers.pop(index % len(self.workers))
            self.paused.discard(pid)
            self.cradle.kill(pid)

    def kill_all(self) -> None:
        for index in range(len(self.replicas)):
            self.kill_api(index)
        while self.workers:
            self.kill_worker(0)
        for process in self.strays:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(self.strays, timeout=10)
        self.strays.clear()

    def pause_worker(self, index: int) -> None:
        started = (process.pid for process in self._started_by(self.replicas[0]))
        if workers := self.workers or [*started]:
            pid = workers[index % len(workers)]
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                self.paused.add(pid)

    def wake_workers(self) -> None:
        for pid in self.paused:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.paused.clear()

    def limit_files(self, size: int | None) -> None:
        """The most bytes that a process of the service may write to a file; None lifts it."""
        for process in self._processes():
            with suppress(psutil.Error):
                _, most = process.rlimit(psutil.RLIMIT_FSIZE)
                process.rlimit(psutil.RLIMIT_FSIZE, (most if size is None else size, most))

    # servers, network, clock, source

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

    def heal_network(self) -> None:
        for proxy in self.proxies.values():
            proxy.heal()

    def set_clock(self, seconds: float) -> None:
        """For all processes of the service: a machine's clock was set."""
        self.offset = timedelta(seconds=seconds)
        _write_whole(self.clock, str(seconds))

    def write_source(self, number: int) -> None:
        """The file that a data set is read from: rows that depend on the number."""
        rows = "".join(f"{i / 40},{number % 97 + i / 7}\n" for i in range(40))
        _write_whole(self.lake / "rows.csv", f"x,y\n{rows}")

    # what it does now

    def now(self) -> datetime:
        """The time by which schedules are due: the database server's, or else the service's."""
        return now() + (timedelta() if self.postgresql else self.offset)

    def wait_until(self, condition: Callable[[], bool], what: str) -> bool:
        """Whether the condition came true in time; services that end meanwhile are restarted."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.mend()
            if condition():
                return True
            time.sleep(0.1)
        print(f"waited {PATIENCE:g} s in vain for {what}")  # noqa: T201
        return False

    def answers(self) -> bool:
        """Whether all replicas do."""
        with suppress(httpx.TransportError):
            seconds = 5 * slowness()
            urls = (f"{replica.url}/health/live" for replica in self.replicas)
            live = (self.http.get(url, timeout=seconds) for url in urls)
            return all(response.status_code == 200 for response in live)
        return False

    def log(self) -> str:
        """The end of what the processes have told."""
        return "".join(path.read_text()[-6000:] for path in sorted(self.folder.glob("*.log")))

    def _servers(self) -> tuple[dict[str, str], dict[str, str]]:
        """URLs of broker and database: the servers' own, and through proxies."""
        assert self.postgresql
        self.redis = self._stack.enter_context(running_redis(self.folder))
        port = int(self.redis.url.partition("127.0.0.1:")[2].partition("/")[0])
        broker = self._stack.enter_context(Proxy(to_port(port)))
        socket = self.postgresql.folder / ".s.PGSQL.5432"
        database = self._stack.enter_context(Proxy(to_socket(socket)))
        self.proxies = {"broker": broker, "database": database}
        name = self._new_database()
        direct = {
            "broker_url": self.redis.url,
            "database_url": self.postgresql.url.replace("/postgres?", f"/{name}?"),
        }
        through = {
            "broker_url": f"redis://127.0.0.1:{broker.port}/0",
            "database_url": f"postgresql://credence@127.0.0.1:{database.port}/{name}",
        }
        return direct, through

    def _processes(self) -> Iterator[psutil.Process]:
        pids = [*self.workers, *(replica.pid for replica in self.replicas if replica.pid)]
        for pid in pids:
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                yield from (process, *process.children(recursive=True))

    def _started_by(self, replica: Replica) -> list[psutil.Process]:
        """The worker of `credence serve`; none while it is being started again."""
        if replica.pid is None:
            return []
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(replica.pid).children()
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
        return name


def _respond_slowly(handler: BaseHTTPRequestHandler) -> None:
    """So that senders are killed while they wait."""
    time.sleep(0.1)
    with suppress(OSError):
        answer(handler, 204)


def _write_whole(path: Path, content: str) -> None:
    staged = path.with_suffix(".new")
    staged.write_text(content)
    staged.rename(path)


def remove(folder: Path) -> None:
    """What a world that came through leaves behind."""
    shutil.rmtree(folder, ignore_errors=True)
