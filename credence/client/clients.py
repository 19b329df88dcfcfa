"""`Client` and `AsyncClient`: the same methods, which `AsyncClient` makes awaitable."""

import os
import weakref
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Self, TypeVar, Unpack

import httpx

from credence import DEFAULT_URL
from credence.client.dataset_calls import DatasetCalls, dataset_of, model_name_of
from credence.client.handles import AsyncTrainedModel, TrainedModel
from credence.client.job_calls import JobCalls
from credence.client.model_calls import ModelCalls
from credence.client.operations import Operation, method
from credence.client.prediction_calls import PredictionCalls
from credence.client.retries import Retries
from credence.client.schedule_calls import ScheduleCalls
from credence.client.transport import AsyncTransport, SyncTransport
from credence.client.webhook_calls import WebhookCalls
from credence.progress import is_interactive
from credence.train_settings import TrainSettings
from credence.types import Json, Version

H = TypeVar("H")

CONNECT_SECONDS = 5.0
RETRIES = Retries()


class Api(
    DatasetCalls,
    JobCalls,
    ScheduleCalls,
    ModelCalls,
    PredictionCalls,
    WebhookCalls,
    Generic[H],
):
    """All methods of both clients; `H` is the class of a version: `TrainedModel` or its async twin.

    Every method raises `CredenceAPIError` when the service refuses, and `ServiceUnreachable` when
    there is no response.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        timeout_seconds: float = 300.0,
        retries: int | Retries = RETRIES,
        progress: bool | None = None,
    ) -> None:
        """Connect to the service at `url`.

        Args:
            url: by default `CREDENCE_URL`; if that is not set, a service on this machine.
            key: by default `CREDENCE_KEY`.
            timeout_seconds: how long a response may take.
            retries: how often a failed request is repeated, if that is safe.
            progress: whether progress bars are shown; by default in terminals and notebooks.
        """
        self.url = (url or os.environ.get("CREDENCE_URL") or DEFAULT_URL).rstrip("/")
        self.retries = retries if isinstance(retries, Retries) else Retries(retries)
        self.progress = is_interactive() if progress is None else progress
        key = (key or os.environ.get("CREDENCE_KEY", "")).strip()
        self._open(
            base_url=self.url,
            timeout=httpx.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds)),
            headers={"Authorization": f"Bearer {key}"} if key else {},
        )

    @abstractmethod
    def _open(self, **options: Any) -> None:
        """Make httpx's client."""

    @abstractmethod
    def _trained_model(self, version: Version) -> H:
        """The version with its methods, such as `predict`."""

    @method
    def train(
        self,
        /,
        data: Any,
        *,
        target: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]],
        model: str | None = None,
        **settings: Unpack[TrainSettings],
    ) -> Operation[H]:
        """Train a model and wait for it; settings not given follow the recommended recipe.

        Args:
            data: what `upload` takes, or the id of a data set (`ds_…`).
            target: the column to predict; a mapping with `name` also has its possible values:
                `lower`, `upper`, `integer`. A list of columns of numbers: predictions also say
                what holds for all of them together (`Prediction.joint`).
            model: the model's name; by default that of the file or data set, else the target's.
            settings: other fields of `POST /train`, as `training={"epochs": 50}`.

        Raises:
            JobFailed: the training failed or was cancelled.
        """
        dataset, name = yield from dataset_of(self, data)
        first = target if isinstance(target, str | Mapping) else target[0]
        column = first if isinstance(first, str) else str(first["name"])
        request: Json = {"model": model or model_name_of(name or column), "dataset": dataset}
        request |= {"target": target, **settings}
        job = yield from JobCalls.submit_train(self, request)
        job = yield from JobCalls.finished(self, job["id"])
        return (yield from Api.model(self, job["model"], job["version"]))

    @method
    def model(self, name: str, version: int | str | None = None) -> Operation[H]:
        """A version of a model, by number or alias; by default the newest."""
        return self._trained_model((yield from ModelCalls.version(self, name, version)))


class Client(Api[TrainedModel], SyncTransport):
    """A client that waits for each response.

    with Client() as client:
        model = client.train("concrete.csv", target="y")
        print(model.predict(rows).std)

    Without `with`, as in a notebook, the connections are closed when the client is deleted.
    """

    def _open(self, **options: Any) -> None:
        self._http = httpx.Client(**options)
        weakref.finalize(self, self._http.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _trained_model(self, version: Version) -> TrainedModel:
        return TrainedModel(self, version)


class AsyncClient(Api[AsyncTrainedModel], AsyncTransport):
    """`Client` for asyncio: await its methods, iterate over its lists with `async for`."""

    def _open(self, **options: Any) -> None:
        self._http = httpx.AsyncClient(**options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _trained_model(self, version: Version) -> AsyncTrainedModel:
        return AsyncTrainedModel(self, version)
