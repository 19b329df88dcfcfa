"""`credence serve`, `api` and `worker`: run the service.

Imports are in the functions: torch and the web framework take seconds to load, and other commands
do not need them.
"""
# ruff: noqa: PLC0415

import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credence import __version__
from credence.rendering import fail

if TYPE_CHECKING:
    from core.settings import Settings

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")]
DataDir = Annotated[
    Path | None,
    typer.Option(help="The data directory, in place of CREDENCE_DATA_DIR."),
]
EXIT_CANNOT_START = 1
EXIT_WRONG_SETTING = 2


def serve(host: Host = "127.0.0.1", port: Port = 8000, data_dir: DataDir = None) -> None:
    """Run the API and one worker; nothing else is needed.

    Examples:

    `credence serve`

    `credence serve --port 8080 --data-dir /var/lib/credence`
    """
    _run(host, port, data_dir, with_worker=True)


def api(host: Host = "127.0.0.1", port: Port = 8000, data_dir: DataDir = None) -> None:
    """Run the API alone; jobs wait until a worker takes them.

    Example: `credence api --port 8080`
    """
    _run(host, port, data_dir, with_worker=False)


def worker(
    data_dir: DataDir = None,
    stop_with_stdin: Annotated[
        bool, typer.Option("--stop-with-stdin", help="Stop when standard input closes.")
    ] = False,
    worker_id: Annotated[
        str | None, typer.Option(hidden=True, help="The name under which it claims jobs.")
    ] = None,
) -> None:
    """Run one worker: it takes jobs from the queue, one at a time.

    Example: `credence worker --data-dir /var/lib/credence`
    """
    _let_idle_threads_sleep()
    if stop_with_stdin:
        from core.process import parent

        parent.stop_with_stdin(grace_seconds=10.0)
    _run_and_leave(lambda: _run_worker(data_dir, worker_id))


def _run_worker(data_dir: Path | None, worker_id: str | None) -> None:
    from core.exceptions import InvalidSetting
    from core.process.long_lived import importing

    with importing():
        from worker.main import run_worker

    try:
        run_worker(settings_from(data_dir), worker_id)
    except InvalidSetting as error:
        fail(str(error), EXIT_WRONG_SETTING)


def _run(host: str, port: int, data_dir: Path | None, *, with_worker: bool) -> None:
    _let_idle_threads_sleep()
    _run_and_leave(lambda: _supervise(host, port, data_dir, with_worker=with_worker))


def _supervise(host: str, port: int, data_dir: Path | None, *, with_worker: bool) -> None:
    """Check address and settings, and start the worker, before the imports that take seconds."""
    from app.access.bind_address import check_bind
    from core.exceptions import InvalidSetting, Unavailable
    from core.process.long_lived import importing
    from credence.serving.listener import CannotStart, listen
    from credence.serving.worker_process import WorkerProcess

    settings = settings_from(data_dir)
    environment = os.environ | {"CREDENCE_DATA_DIR": str(settings.data_dir)}
    try:
        check_bind(settings, host)
        listener = listen(host, port)
        with WorkerProcess(environment) if with_worker else nullcontext() as worker:
            with importing():
                from credence.serving.supervisor import Supervisor

                supervisor = Supervisor(settings, host, listener, worker)
            supervisor.run()
    except InvalidSetting as error:
        fail(str(error), EXIT_WRONG_SETTING)
    except (CannotStart, Unavailable) as error:
        fail(str(error), EXIT_CANNOT_START)


def _run_and_leave(run: Callable[[], None]) -> None:
    """Run the service, then end the process at once with the exit code that `fail` gave, or 0.

    An unforeseen exception ends it as usual, with its traceback.
    """
    from core.process.ending import leave

    code = 0
    try:
        run()
    except typer.Exit as ending:
        code = ending.exit_code
    leave(code)


def _let_idle_threads_sleep() -> None:
    """Set OpenMP's wait policy, before torch is loaded.

    API and worker share the cores. By default OpenMP's threads spin while they wait, which makes
    small predictions several times slower when the cores are busy.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def settings_from(data_dir: Path | None) -> "Settings":
    """Valid settings; an invalid one ends the command with a message."""
    from core.exceptions import InvalidSetting
    from core.release import release
    from core.settings import load_settings
    from core.telemetry.logging import configure_logging

    if release() not in (__version__, "unknown"):
        advice = "install all parts from one clone"
        fail(f"credence-server {release()} with credence-client {__version__}: {advice}", 2)

    try:
        settings = load_settings(**({} if data_dir is None else {"data_dir": data_dir}))
        settings.prepare_data_dir()
    except InvalidSetting as error:
        fail(str(error), EXIT_WRONG_SETTING)
    if not os.access(settings.data_dir, os.W_OK | os.X_OK):
        fail(f"CREDENCE_DATA_DIR={settings.data_dir}: not writable", EXIT_WRONG_SETTING)
    configure_logging(settings.log_format, settings.log_level)
    return settings
