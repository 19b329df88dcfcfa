"""The worker process. It runs one job at a time, in the main thread, until it is stopped."""

import logging
import threading
import warnings

import structlog
import torch
from celery import Celery
from celery.exceptions import CPendingDeprecationWarning, SecurityWarning
from celery.signals import setup_logging, worker_shutting_down

from core.context import open_context
from core.jobs.queue import RUN_JOB, celery_options
from core.names import new_worker_id
from core.process.devices import service_device
from core.process.freed_memory import keep_freed_memory
from core.settings import Settings
from core.telemetry.exposition import register_process
from core.telemetry.logging import configure_logging
from core.telemetry.tracing import flush_traces, start_tracing
from worker.cleaner import Cleaner
from worker.metrics import WorkerMetrics, serve_metrics
from worker.preparation import preparing
from worker.runner import JobRunner
from worker.schedules.scheduler import Scheduler
from worker.sweeper import Sweeper
from worker.webhook_sender import WebhookSender

log = structlog.get_logger()


def run_worker(settings: Settings, worker_id: str | None = None) -> None:
    """Run until SIGTERM or SIGINT. A running job then returns to the queue with its checkpoint.

    Args:
        worker_id: the name under which it claims jobs; a new one if None.

    Raises:
        InvalidSetting: a setting does not work on this machine.
    """
    configure_logging(settings.log_format, settings.log_level)
    start_tracing("credence-worker")
    torch.set_num_threads(settings.threads)
    keep_freed_memory()
    device = service_device(settings)
    stopping = threading.Event()
    metrics = WorkerMetrics()
    register_process(metrics.registry, settings.data_dir)
    port = serve_metrics(metrics, settings)
    context = open_context(settings)
    runner = JobRunner(context, worker_id or new_worker_id(), metrics, stopping.is_set)
    sweeper, cleaner = Sweeper(context, runner, metrics, device), Cleaner(context)
    webhooks = WebhookSender(context, metrics)
    scheduler = Scheduler(context, metrics)
    log.info("worker ready", worker=runner.worker_id, device=device, metrics_port=port)
    try:
        sweeper.start()
        cleaner.start()
        webhooks.start()
        scheduler.start()
        with preparing():
            _consume(settings, runner, stopping)
    finally:
        stopping.set()
        webhooks.stop()
        scheduler.stop()
        cleaner.stop()
        sweeper.stop()
        context.close()
        flush_traces()
        log.info("worker stopped")


def _consume(settings: Settings, runner: JobRunner, stopping: threading.Event) -> None:
    """Run Celery's consumer loop. The solo pool runs jobs in this process, which uses CUDA."""

    def stop(**_: object) -> None:
        stopping.set()

    def keep_logging(**_: object) -> None:
        """Because this signal has a receiver, Celery does not replace the service's logging."""

    _quieten_celery()
    worker_shutting_down.connect(stop)
    setup_logging.connect(keep_logging)
    try:
        app = _celery(settings, runner)
        app.Worker(pool="solo", concurrency=1, quiet=True, without_gossip=True).start()
    finally:
        worker_shutting_down.disconnect(stop)
        setup_logging.disconnect(keep_logging)


def _celery(settings: Settings, runner: JobRunner) -> Celery:
    """An application with one task, under the name in `core.jobs.queue`."""
    app = Celery("credence-worker", set_as_current=False)
    app.conf.update(celery_options(settings))

    @app.task(name=RUN_JOB)  # type: ignore[untyped-decorator]
    def run_job(_: str) -> None:
        """A message has the id of a job, but the database tells whose turn it is."""
        runner.wake()

    return app


def _quieten_celery() -> None:
    """Drop log lines that repeat the runner's, and two warnings.

    Celery warns about running as root, because a pickled message could run code. This worker
    accepts only JSON.
    """
    for name in ("celery", "kombu"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=SecurityWarning)
    warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)
