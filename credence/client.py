"""A thin, typed HTTP client: one method per route, plain dictionaries in and out."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from credence.exceptions import CredenceAPIError, ServiceUnreachable
from credence.media_types import headers_for
from credence.standalone import in_one_file
from credence.types import (
    AuditLine,
    Card,
    ComparedMethod,
    Dataset,
    Feedback,
    Job,
    Json,
    Model,
    Prediction,
    RollingFeedback,
    Shared,
    Version,
)

DEFAULT_URL = "http://127.0.0.1:8000"
FINAL_STATUSES = ("succeeded", "failed", "cancelled")


class Client(AbstractContextManager["Client"]):
    """Speaks to the service at `url`, with the key that is given or that `CREDENCE_KEY` holds.

    Every method raises `CredenceAPIError` when the service refuses, `ServiceUnreachable` when
    there is no answer within `timeout_seconds`.
    """

    def __init__(
        self, url: str = DEFAULT_URL, *, key: str | None = None, timeout_seconds: float = 300.0
    ) -> None:
        self.url = url.rstrip("/")
        timeout = httpx.Timeout(timeout_seconds, connect=5.0)
        key = (key or os.environ.get("CREDENCE_KEY", "")).strip()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(base_url=self.url, timeout=timeout, headers=headers)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # --- data sets

    def upload(self, path: Path, name: str | None = None) -> Dataset:
        """Stream a file to the service; the same bytes again give the same data set.

        Raises:
            ValueError: if the file's suffix is not one that the service reads.
        """
        headers = headers_for(path)
        with path.open("rb") as file:
            params = {"name": name or path.name}
            return self._call("POST", "/datasets", params=params, content=file, headers=headers)

    def datasets(self) -> Iterator[Dataset]:
        """All data sets, page after page."""
        return self._pages("/datasets")

    def dataset(self, dataset_id: str) -> Dataset:
        """One data set with its columns."""
        return self._call("GET", _path("datasets", dataset_id))

    def dataset_rows(self, dataset_id: str, limit: int = 20) -> list[Json]:
        """The first rows, as records."""
        path = _path("datasets", dataset_id, "rows")
        return self._call("GET", path, params={"limit": limit})["data"]

    def delete_dataset(self, dataset_id: str) -> None:
        """Refused while a queued or running job needs it."""
        self._call("DELETE", _path("datasets", dataset_id))

    # --- jobs

    def train(self, request: Json) -> Job:
        """Queue a training job; `request` is the body of `POST /train`."""
        return self._call("POST", "/train", json=request)

    def compare(self, request: Json) -> Job:
        """Queue a training for each of several methods; `request` is the body of its route."""
        return self._call("POST", "/compare", json=request)

    def comparison(self, job_id: str) -> list[ComparedMethod]:
        """How the methods of a comparison that has ended did, in the order of the request."""
        return self._call("GET", _path("jobs", job_id, "result"))["data"]

    def comparison_picture(self, job_id: str) -> str:
        """The same as a picture: an SVG document."""
        headers = {"Accept": "image/svg+xml"}
        return self._send("GET", _path("jobs", job_id, "result"), headers=headers).text

    def jobs(self, status: str | None = None, model: str | None = None) -> Iterator[Job]:
        """Jobs, newest first, page after page."""
        return self._pages("/jobs", status=status, model=model)

    def job(self, job_id: str) -> Job:
        """One job as it stands now."""
        return self._call("GET", _path("jobs", job_id))

    def cancel(self, job_id: str) -> Job:
        """Ask a job to stop; a running one does so between two mini-batches."""
        return self._call("POST", _path("jobs", job_id, "cancel"))

    def resume(self, job_id: str) -> Job:
        """Queue a failed or cancelled job again; it goes on from its checkpoint."""
        return self._call("POST", _path("jobs", job_id, "resume"))

    def wait(
        self,
        job_id: str,
        on_progress: Callable[[Job], None] | None = None,
        poll_seconds: float = 0.3,
    ) -> Job:
        """Ask until the job has ended, well or not; `on_progress` sees every answer."""
        while True:
            job = self.job(job_id)
            if on_progress:
                on_progress(job)
            if job["status"] in FINAL_STATUSES:
                return job
            time.sleep(poll_seconds)

    # --- models

    def models(self) -> Iterator[Model]:
        """All models by name, page after page."""
        return self._pages("/models")

    def model(self, name: str) -> Json:
        """One model with its versions and aliases."""
        return self._call("GET", _path("models", name))

    def version(self, name: str, version: int | str) -> Version:
        """One version, by number or alias."""
        return self._call("GET", _path("models", name, "versions", version))

    def card(self, name: str, version: int | str) -> Card:
        """The model card of a version: how it was trained, how it did, what its limits are."""
        return self._call("GET", _path("models", name, "versions", version, "card"))

    def card_page(self, name: str, version: int | str) -> str:
        """The same as a page in one file, which needs neither the service nor a network."""
        path = _path("models", name, "versions", version, "card")
        page = self._send("GET", path, headers={"Accept": "text/html"}).text
        return in_one_file(page, lambda url: self._send("GET", url).text)

    def export_version(self, name: str, version: int | str, path: Path) -> None:
        """Stream a version's archive to `path`: all of it, or nothing."""
        self._download(_path("models", name, "versions", version, "archive"), path)

    def import_version(self, path: Path, name: str, alias: str | None = None) -> Version:
        """Make a version of an archive, from this installation or another."""
        headers = {"Content-Type": "application/x-tar"}
        params = {} if alias is None else {"alias": alias}
        url = _path("models", name, "versions")
        with path.open("rb") as file:
            return self._call("POST", url, params=params, content=file, headers=headers)

    def delete_model(self, name: str) -> None:
        """Delete a model with all its versions."""
        self._call("DELETE", _path("models", name))

    def delete_version(self, name: str, version: int | str) -> None:
        """Delete one version; its number is not used again."""
        self._call("DELETE", _path("models", name, "versions", version))

    def set_alias(self, name: str, alias: str, version: int) -> None:
        """Let an alias name this version from now on."""
        self._call("PUT", _path("models", name, "aliases", alias), json={"version": version})

    def delete_alias(self, name: str, alias: str) -> None:
        """Remove an alias; the version it named stays."""
        self._call("DELETE", _path("models", name, "aliases", alias))

    def evaluate(self, name: str, request: Json) -> Job:
        """Queue an evaluation on labelled data; the job's `metrics` are its result."""
        return self._call("POST", _path("models", name, "evaluate"), json=request)

    # --- owners

    def sharing(self, kind: Shared, identifier: str) -> list[str]:
        """The owners who see a thing beside its own, by name."""
        return self._call("GET", _path(kind, identifier, "sharing"))["with"]

    def share(self, kind: Shared, identifier: str, readers: list[str]) -> list[str]:
        """Let these owners, and nobody else, see a thing; "*" is everybody."""
        body = {"with": readers}
        return self._call("PUT", _path(kind, identifier, "sharing"), json=body)["with"]

    def audit(self, owner: str | None = None, object: str | None = None) -> Iterator[AuditLine]:
        """Who did what, newest first; of one owner, or of one thing."""
        return self._pages("/audit", owner=owner, object=object)

    # --- predictions and metrics

    def predict(self, request: Json) -> Prediction:
        """Predict; `request` is the body of `POST /predict`."""
        return self._call("POST", "/predict", json=request)

    def predict_batch(self, request: Json) -> Job:
        """Queue the prediction of a whole data set; `request` is the body of its route."""
        return self._call("POST", "/predict/batch", json=request)

    def download_result(self, job_id: str, path: Path) -> None:
        """Stream the Parquet file of an offline prediction to `path`: all of it, or nothing."""
        self._download(_path("jobs", job_id, "result"), path)

    def feedback(self, request: Json) -> Feedback:
        """Tell what came true; `request` is the body of `POST /feedback`."""
        return self._call("POST", "/feedback", json=request)

    def rolling_feedback(self, name: str, version: int | str | None = None) -> RollingFeedback:
        """What the labels of a version say, by number or alias; of the newest by default."""
        params = {} if version is None else {"version": version}
        return self._call("GET", _path("models", name, "feedback"), params=params)

    def metrics(self) -> str:
        """The service's metrics in Prometheus' text format."""
        return self._send("GET", "/metrics").text

    # --- how requests are made

    def _pages(self, path: str, **filters: str | None) -> Iterator[Any]:
        params = {key: value for key, value in filters.items() if value is not None}
        while True:
            page = self._call("GET", path, params=params)
            yield from page["data"]
            if page["next_cursor"] is None:
                return
            params["cursor"] = page["next_cursor"]

    def _call(self, method: str, path: str, **options: Any) -> Any:
        response = self._send(method, path, **options)
        return response.json() if response.content else None

    def _download(self, url: str, path: Path) -> None:
        partial = path.with_name(f"{path.name}.part")
        with self._stream(url) as response, partial.open("wb") as file:
            for chunk in response.iter_bytes():
                file.write(chunk)
        partial.replace(path)

    @contextmanager
    def _stream(self, path: str) -> Iterator[httpx.Response]:
        with self._reachable(), self._http.stream("GET", path) as response:
            if response.is_error:
                response.read()
                raise CredenceAPIError.from_response(response)
            yield response

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        with self._reachable():
            response = self._http.request(method, path, **options)
        if response.is_error:
            raise CredenceAPIError.from_response(response)
        return response

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        try:
            yield
        except httpx.TransportError as error:
            raise ServiceUnreachable(self.url, str(error) or type(error).__name__) from error


def _path(*parts: str | int) -> str:
    """A path of escaped segments, dots too: `..` must not climb to what holds a version."""
    return "/" + "/".join(quote(str(part), safe="").replace(".", "%2E") for part in parts)
