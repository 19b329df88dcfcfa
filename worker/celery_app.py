"""The Celery side: one task under the name that the API sends to."""

from celery import Celery

from core.jobs.queue import RUN_JOB, celery_options
from core.settings import Settings
from worker.runner import JobRunner


def build_celery(settings: Settings, runner: JobRunner) -> Celery:
    """An application with its one task; the task may run twice without harm."""
    app = Celery("credence-worker", set_as_current=False)
    app.conf.update(celery_options(settings))

    @app.task(name=RUN_JOB)  # type: ignore[untyped-decorator]
    def run_job(job_id: str) -> None:
        runner.run(job_id)

    return app
