"""`credence serve`, `api` and `worker`: run the service.

Imports are in the functions: torch and the web framework take seconds to load, and other commands
do not need them.
"""
# ruff: noqa: PLC0415

import os
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
) -> None:
    """Run one worker: it takes jobs from the queue, one at a time.

    Example: `credence worker --data-dir /var/lib/credence`
    """
    _let_idle_threads_sleep()
    if stop_with_stdin:
        from core.process import parent

        parent.stop_with_stdin(grace_seconds=10.0)
    from core.exceptions import InvalidSetting
    from worker.main import run_worker

    try:
        run_worker(settings_from(data_dir))
    except InvalidSetting as error:
        fail(str(error), EXIT_WRONG_SETTING)


def _run(host: str, port: int, data_dir: Path | None, *, with_worker: bool) -> None:
    """Check address and settings before the imports that take seconds."""
    _let_idle_threads_sleep()
    from app.access.bind_address import check_bind
    from core.exceptions import InvalidSetting, Unavailable
    from credence.serving.api_thread import CannotStart, listen

    settings = settings_from(data_dir)
    try:
        check_bind(settings, host)
        listener = listen(host, port)
        from credence.serving.supervisor import Supervisor

        Supervisor(settings, host, listener, with_worker=with_worker).run()
    except InvalidSetting as error:
        fail(str(error), EXIT_WRONG_SETTING)
    except (CannotStart, Unavailable) as error:
        fail(str(error), EXIT_CANNOT_START)


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
        advice = f"pip install credence-client=={release()}"
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
