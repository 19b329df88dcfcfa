"""A version of a model, at hand: it predicts and tells of itself."""

from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from credence.client.calls import Calls
from credence.client.flows import Async, Flow, Sync, method
from credence.client.model_calls import ModelCalls
from credence.types import Card, Json, PredictSettings, Version

if TYPE_CHECKING:
    from credence.client.clients import AsyncClient, Client
    from credence.client.prediction import Prediction

T = TypeVar("T")

SCORES = ("log_likelihood", "rmse", "mase", "accuracy", "perplexity")


class Handle:
    """What both kinds of client have at hand of a version; it never changes.

    Attributes:
        description: the version as the service tells it: features, settings, variants, metrics.
    """

    description: Version
    _calls: Calls

    def __repr__(self) -> str:
        about = self.description
        scores = [f"{name} {self.metrics[name]:.4g}" for name in SCORES if self.metrics.get(name)]
        return (
            f"<{type(self).__name__} {self.name} version {self.version}: {about['task']} of "
            f"{about['target']!r}; on held-out rows: {', '.join(scores)}>"
        )

    @property
    def name(self) -> str:
        """The model's name."""
        return self.description["model"]

    @property
    def version(self) -> int:
        """The version's number."""
        return self.description["version"]

    @property
    def features(self) -> list[str]:
        """The columns that it reads, in its order."""
        return [feature["name"] for feature in self.description["features"]]

    @property
    def metrics(self) -> Json:
        """Scores on rows that were held out: `rmse`, `coverage`, … or `accuracy`, `ece`, …"""
        return self.description["metrics"]

    @method
    def predict(
        self, rows: Any, *, future: Any = None, **settings: Unpack[PredictSettings]
    ) -> "Flow[Prediction]":
        """As the client's `predict`, with this version."""
        from credence.client.asking import ask  # noqa: PLC0415

        return ask(self._calls, self.description, rows, settings, future)

    @method
    def card(self) -> Flow[Card]:
        """The model card: how it was trained, how it did, what its limits are."""
        return ModelCalls.card(self._calls, self.name, self.version)

    @method
    def set_alias(self, alias: str) -> Flow[None]:
        """Let an alias name this version from now on."""
        return ModelCalls.set_alias(self._calls, self.name, alias, self.version)


class TrainedModel(Handle, Sync):
    """A version of a model, as `Client` gives it."""

    def __init__(self, client: "Client", description: Version) -> None:
        self._calls = self._client = client
        self.description = description

    def run(self, flow: Flow[T]) -> T:
        return self._client.run(flow)


class AsyncTrainedModel(Handle, Async):
    """A version of a model, as `AsyncClient` gives it: its methods are awaited."""

    def __init__(self, client: "AsyncClient", description: Version) -> None:
        self._calls = self._client = client
        self.description = description

    async def run(self, flow: Flow[T]) -> T:
        return await self._client.run(flow)
