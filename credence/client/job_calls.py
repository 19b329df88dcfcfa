"""Jobs: trainings, comparisons, evaluations, offline predictions."""

from collections.abc import Callable
from pathlib import Path

from credence.client.calls import Calls
from credence.client.operations import Listing, Operation, Sleep, listing, method
from credence.client.requests import path
from credence.exceptions import JobFailed
from credence.progress import job_bar
from credence.types import ComparedMethod, Job, Json

FINAL_STATUSES = ("succeeded", "failed", "cancelled")


class JobCalls(Calls):
    """Queue jobs, follow them and read their results.

    `submit_…` takes the JSON document of the route and returns the queued job.
    """

    @method
    def submit_train(self, request: Json) -> Operation[Job]:
        """Queue a training; `request` is the body of `POST /train`."""
        return self.create("/train", json=request)

    @method
    def submit_compare(self, request: Json) -> Operation[Job]:
        """Queue a training per method; `request` is the body of `POST /compare`."""
        return self.create("/compare", json=request)

    @method
    def submit_evaluate(self, model: str, request: Json) -> Operation[Job]:
        """Queue an evaluation on labelled data; the job's `metrics` are its result."""
        return self.create(path("models", model, "evaluate"), json=request)

    @method
    def submit_acquire(self, model: str, request: Json) -> Operation[Job]:
        """Queue the choice of rows to label; the job's `metrics` are its result."""
        return self.create(path("models", model, "acquire"), json=request)

    @method
    def submit_batch(self, request: Json) -> Operation[Job]:
        """Queue the prediction of a data set; `request` is the body of `POST /predict/batch`."""
        return self.create("/predict/batch", json=request)

    @listing
    def jobs(self, status: str | None = None, model: str | None = None) -> Listing[Job]:
        """Jobs, newest first, page after page."""
        return self.pages("/jobs", status=status, model=model)

    @method
    def job(self, job_id: str) -> Operation[Job]:
        """The current state of a job."""
        return self.call("GET", path("jobs", job_id))

    @method
    def cancel(self, job_id: str) -> Operation[Job]:
        """Ask a job to stop; a running job stops between two mini-batches."""
        return self.call("POST", path("jobs", job_id, "cancel"))

    @method
    def resume(self, job_id: str) -> Operation[Job]:
        """Queue a failed or cancelled job again; it continues from its checkpoint."""
        return self.call("POST", path("jobs", job_id, "resume"))

    @method
    def wait(
        self,
        job_id: str,
        on_progress: Callable[[Job], None] | None = None,
        poll_seconds: float = 0.3,
    ) -> Operation[Job]:
        """Poll until the job has ended; `on_progress` is called with each state."""
        while True:
            job = yield from JobCalls.job(self, job_id)
            if on_progress:
                on_progress(job)
            if job["status"] in FINAL_STATUSES:
                return job
            yield Sleep(poll_seconds)

    @method
    def finished(self, job_id: str) -> Operation[Job]:
        """Wait for a job, with a progress bar if the client shows them, and return it.

        Raises:
            JobFailed: it failed or was cancelled.
        """
        with job_bar(visible=self.progress) as show:
            job = yield from JobCalls.wait(self, job_id, show)
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
