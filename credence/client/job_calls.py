"""Jobs: trainings, comparisons, evaluations, offline predictions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from credence.client.calls import Calls
from credence.client.dataset_calls import dataset_of
from credence.client.operations import Listing, Operation, Sleep, listing, method
from credence.client.requests import path
from credence.client.summaries import ShownJob
from credence.exceptions import JobFailed
from credence.progress import job_bar
from credence.types import ComparedMethod, Job, Json, Version

FINAL_STATUSES = ("succeeded", "failed", "cancelled")


class JobCalls(Calls):
    """Queue jobs, follow them and read their results.

    `submit_…` takes the JSON document of the route and returns the queued job.
    """

    @method
    def submit_train(self, request: Json) -> Operation[Job]:
        """Queue a training; `request` is the body of `POST /train`."""
        return self.create("/train", json=request, read=self._job)

    @method
    def submit_compare(self, request: Json) -> Operation[Job]:
        """Queue a training per method; `request` is the body of `POST /compare`."""
        return self.create("/compare", json=request, read=self._job)

    @method
    def submit_evaluate(self, model: str, request: Json) -> Operation[Job]:
        """Queue an evaluation on labelled data; the job's `metrics` are its result."""
        return self.create(path("models", model, "evaluate"), json=request, read=self._job)

    @method
    def submit_acquire(self, model: str, request: Json) -> Operation[Job]:
        """Queue the choice of rows to label; the job's `metrics` are its result."""
        return self.create(path("models", model, "acquire"), json=request, read=self._job)

    @method
    def submit_batch(self, request: Json) -> Operation[Job]:
        """Queue the prediction of a data set; `request` is the body of `POST /predict/batch`."""
        return self.create("/predict/batch", json=request, read=self._job)

    @listing
    def jobs(self, status: str | None = None, model: str | None = None) -> Listing[Job]:
        """Jobs, newest first, page after page."""
        return self.pages("/jobs", status=status, model=model)

    @method
    def job(self, job_id: str) -> Operation[Job]:
        """The current state of a job."""
        return self.call("GET", path("jobs", job_id), read=self._job)

    @method
    def cancel(self, job_id: str) -> Operation[Job]:
        """Ask a job to stop; a running job stops between two mini-batches."""
        return self.call("POST", path("jobs", job_id, "cancel"), read=self._job)

    @method
    def resume(self, job_id: str) -> Operation[Job]:
        """Queue a failed or cancelled job again; it continues from its checkpoint."""
        return self.call("POST", path("jobs", job_id, "resume"), read=self._job)

    @method
    def wait(
        self,
        job_id: str,
        on_progress: Callable[[Job], None] | None = None,
        poll_seconds: float = 0.3,
    ) -> Operation[Job]:
        """Poll until the job has ended.

        Args:
            on_progress: called with each state; by default a progress bar, if the client shows
                them.
        """
        with job_bar(visible=self.progress and on_progress is None) as bar:
            show = on_progress or bar
            while True:
                job = yield from JobCalls.job(self, job_id)
                show(job)
                if job["status"] in FINAL_STATUSES:
                    return job
                yield Sleep(poll_seconds)

    @method
    def finished(self, job_id: str) -> Operation[Job]:
        """Wait for a job, with a progress bar if the client shows them, and return it.

        Raises:
            JobFailed: it failed or was cancelled.
        """
        job = yield from JobCalls.wait(self, job_id)
        if job["status"] != "succeeded":
            raise JobFailed(job)
        return job

    @method
    def comparison(self, job_id: str) -> Operation[list[ComparedMethod]]:
        """The scores of the methods of a finished comparison, in the order of the request."""
        result = path("jobs", job_id, "result")
        return self.call("GET", result, read=lambda answer: answer.json()["data"])

    @method
    def comparison_page(self, job_id: str) -> Operation[str]:
        """The scores and charts as one HTML file, which needs neither the service nor a network."""
        return self.page_as_file(path("jobs", job_id, "result"))

    @method
    def download_result(self, job_id: str, file: Path | str) -> Operation[None]:
        """Stream an offline prediction, as Parquet, to `file`, which appears when complete."""
        result = path("jobs", job_id, "result")
        return self.call("GET", result, save_as=Path(file), read=lambda _: None)

    def _job(self, response: httpx.Response) -> Any:
        """The job in a response, as a notebook shows it; an estimate as it is."""
        document: Json = response.json()
        return ShownJob(document, self.url) if "status" in document else document


def evaluation(calls: Calls, version: Version, data: Any, prune: float = 0.0) -> Operation[Json]:
    """The scores of a version on labelled rows, which a job measures.

    Raises:
        JobFailed: the job failed or was cancelled.
    """
    dataset, _ = yield from dataset_of(calls, data)
    request: Json = {"version": version["version"], "dataset": dataset, "prune": prune}
    job = yield from JobCalls.submit_evaluate(calls, version["model"], request)
    return (yield from JobCalls.finished(calls, job["id"]))["metrics"]
