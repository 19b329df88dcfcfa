"""What the forked processes do: the service's own commands, or one job with a death at a write.

They hurry where the service takes its time (sweeps, pauses), and their clock is what a file says.
"""

import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

HURRY = 0.4  # seconds between two beats of a worker, in place of 2


def load() -> None:
    """Import all that a process of the service needs, also what is imported at first use: one job.

    No thread and no connection is left, and the compiled kernels are there. What is loaded is
    shared with the children as long as no collection of garbage touches it.
    """
    import gc

    import torch

    import app.main
    import credence.serving.commands.service
    import credence.serving.supervisor
    from core.context import open_context
    from core.settings import load_settings
    from models.prediction.compiled.compiler import compiler
    from tests.worker.conftest import QUICK, add_line, train_job
    from worker.metrics import WorkerMetrics
    from worker.runner import JobRunner

    _ = (app.main, credence.serving.commands.service, credence.serving.supervisor)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        context = open_context(load_settings(data_dir=folder, threads=1))
        train_job(context, add_line(context), QUICK)
        JobRunner(context, "first", WorkerMetrics(), lambda: False).wake()
        context.close()
    compiler().wait()
    gc.collect()
    gc.freeze()


def run(order: dict[str, Any]) -> NoReturn:
    """In the child: its files, its environment, its clock, then its work; ends the process."""
    code = 1
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ.update(order["environment"])
        _hurry()
        if "CHAOS_CLOCK" in os.environ:
            _follow_clock(Path(os.environ["CHAOS_CLOCK"]))
        globals()[order["entry"]](**order["arguments"])
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def worker() -> None:
    """`credence worker`."""
    from credence.serving.commands import service

    service.worker()


def api(port: int) -> None:
    """`credence api`."""
    from credence.serving.commands import service

    service.api("127.0.0.1", port, None)


def serve(port: int) -> None:
    """`credence serve`, whose worker is a process as slow to start as any."""
    from credence.serving.commands import service

    service.serve("127.0.0.1", port, None)


def run_job(deadly_write: int) -> None:
    """Run a job here, and die before the n-th write of its publication."""
    from core.context import open_context
    from core.jobs.results import Results
    from core.registry.registry import Registry
    from core.settings import load_settings
    from worker.metrics import WorkerMetrics
    from worker.runner import JobRunner

    context = open_context(load_settings())
    for kind in (Registry, Results):
        _arm(kind, "publish", deadly_write)
    JobRunner(context, "dying", WorkerMetrics(), lambda: False).wake()


def add_dataset(path: str, deadly_write: int) -> None:
    """Take in a file, and die before the n-th write."""
    from core.context import open_context
    from core.datasets.datasets import Datasets
    from core.settings import load_settings

    context = open_context(load_settings())
    _arm(Datasets, "add", deadly_write)
    context.datasets.add("line", "text/csv", Path(path))


def _hurry() -> None:
    """Look often, wait briefly, and leave out what only measures a model that is trained."""
    from models.tabular import measurement
    from worker import runner, sweeper, training, webhook_sender
    from worker.schedules import scheduler

    sweeper._BEAT_SECONDS = scheduler.SECONDS = webhook_sender.ROUND_SECONDS = HURRY
    runner.PAUSE_SECONDS = 1.0
    runner.WRITE_AGAIN_SECONDS = 0.2
    training.with_baselines = lambda model, *_, **__: model
    measurement.measure_samplers = lambda *_: None


def _follow_clock(file: Path) -> None:
    """All that asks for the time gets it as many seconds off as the file says."""
    from core import clock

    real_now, real_time = clock.now, time.time

    def offset() -> float:
        return float(file.read_text() or 0)

    def shifted() -> Any:
        return real_now() + timedelta(seconds=offset())

    for module in list(sys.modules.values()):
        if getattr(module, "now", None) is real_now:
            module.now = shifted  # type: ignore[attr-defined]
    time.time = lambda: real_time() + offset()


def _arm(kind: type, method: str, deadly_write: int) -> None:
    """From the method's call on, count the writes to disk and database; die before the n-th."""
    original = getattr(kind, method)

    def armed(*arguments: Any, **options: Any) -> Any:
        _count_writes(deadly_write)
        return original(*arguments, **options)

    setattr(kind, method, armed)


def _count_writes(deadly_write: int) -> None:
    from sqlalchemy import Engine, event

    left = deadly_write

    def write(*_: object, **__: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def before(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            write()
            return function(*arguments, **options)

        return counted

    for name in ("rename", "replace", "fsync", "mkdir", "unlink", "rmdir"):
        setattr(os, name, before(getattr(os, name)))
    event.listen(Engine, "commit", write)
