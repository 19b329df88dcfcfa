"""A version of a model: its description, and methods that predict and evaluate with it."""

from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from credence.client.calls import Calls
from credence.client.dataset_calls import dataset_of
from credence.client.job_calls import JobCalls, evaluation
from credence.client.model_calls import ModelCalls
from credence.client.operations import Async, Operation, Sync, method
from credence.client.plots.methods import Plots
from credence.client.summaries import model_html
from credence.types import (
    Baseline,
    Card,
    ExpectedScores,
    Feedback,
    Json,
    PredictSettings,
    ReadingOptions,
    RowsToLabel,
    Version,
)

if TYPE_CHECKING:
    from credence.client.clients import AsyncClient, Client
    from credence.client.prediction import Prediction

T = TypeVar("T")

SCORES = ("log_likelihood", "rmse", "mase", "accuracy", "perplexity")


class Handle(Plots):
    """A version of a model, for both kinds of client; it never changes.

    Attributes:
        description: the service's document: features, settings, variants, metrics.
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

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return model_html(self.description, self._calls.url)

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
        """The names of the input columns, in the model's order."""
        return [feature["name"] for feature in self.description["features"]]

    @property
    def metrics(self) -> Json:
        """Scores on held-out rows: `rmse`, `coverage`, … or `accuracy`, `ece`, …"""
        return self.description["metrics"]

    @property
    def notes(self) -> list[str]:
        """What training decided, and which simple methods are as good."""
        return self.description["notes"]

    @property
    def baselines(self) -> list[Baseline]:
        """The scores of simple methods on the same rows; empty if none was fitted."""
        return self.description["baselines"]

    @method
    def predict(
        self, rows: Any, *, future: Any = None, **settings: Unpack[PredictSettings]
    ) -> "Operation[Prediction]":
        """Predict with this version; see `Client.predict`."""
        from credence.client.rows import predict_rows  # noqa: PLC0415

        return predict_rows(self._calls, self.description, rows, settings, future)

    @method
    def evaluate(self, data: Any, *, prune: float = 0.0) -> Operation[Json]:
        """Scores on labelled rows, in any form that `Client.train` takes: `rmse`, `coverage`, …

        Raises:
            JobFailed: the evaluation failed or was cancelled.
        """
        return evaluation(self._calls, self.description, data, prune)

    @method
    def acquire(
        self, data: Any, k: int, *, batch: bool = True, prune: float = 0.0
    ) -> Operation[RowsToLabel]:
        """The `k` rows whose labels would teach this version most: numbers of rows of `data`.

        Args:
            data: rows in any form that `Client.train` takes; those that have the target are left
                out.
            batch: choose rows for what their labels tell together, so that like rows are chosen
                once; False: for what each tells by itself.

        Raises:
            JobFailed: the job failed or was cancelled.
        """
        dataset, _ = yield from dataset_of(self._calls, data)
        request: Json = {"version": self.version, "dataset": dataset, "k": k, "batch": batch}
        request["prune"] = prune
        job = yield from JobCalls.submit_acquire(self._calls, self.name, request)
        found: Any = (yield from JobCalls.finished(self._calls, job["id"]))["metrics"]
        chosen: RowsToLabel = found
        return chosen

    @method
    def expected(
        self, data: Any, *, level: float = 0.9, prune: float = 0.0
    ) -> Operation[ExpectedScores]:
        """The scores to expect of this version on rows whose truth is not known, with intervals.

        `alert` says whether they leave what training promised, and `reasons` why.

        Args:
            data: rows in any form that `Client.train` takes; their target is not used.
            level: probability of the intervals.
        """
        dataset, _ = yield from dataset_of(self._calls, data)
        return (
            yield from ModelCalls.expected(
                self._calls, self.name, dataset, version=self.version, prune=prune, level=level
            )
        )

    @method
    def feedback(
        self,
        rows: Any,
        truth: Any,
        *,
        prune: float | None = None,
        **reading: Unpack[ReadingOptions],
    ) -> Operation[Feedback]:
        """Send the true values of rows, and get the scores of the predictions for them.

        Args:
            rows: as for `predict`; also the path of a file.
            truth: a value per row, None or NaN if unknown; or the name of their column in `rows`.
            prune: the fraction of the pruned variant to score.
            reading: of a file `delimiter`, `encoding`, `decimal`, `sheet` and others.
        """
        from credence.client.rows import submit_feedback  # noqa: PLC0415

        return submit_feedback(self._calls, self.description, rows, truth, prune, **reading)

    @method
    def card(self) -> Operation[Card]:
        """The model card: training, scores and known limits."""
        return ModelCalls.card(self._calls, self.name, self.version)

    @method
    def set_alias(self, alias: str) -> Operation[None]:
        """Set an alias to this version."""
        return ModelCalls.set_alias(self._calls, self.name, alias, self.version)


class TrainedModel(Handle, Sync):
    """A version of a model, as `Client` gives it."""

    def __init__(self, client: "Client", description: Version) -> None:
        self._calls = self._client = client
        self.description = description

    def run(self, operation: Operation[T]) -> T:
        return self._client.run(operation)


class AsyncTrainedModel(Handle, Async):
    """A version of a model, as `AsyncClient` gives it: its methods are awaited."""

    def __init__(self, client: "AsyncClient", description: Version) -> None:
        self._calls = self._client = client
        self.description = description

    async def run(self, operation: Operation[T]) -> T:
        return await self._client.run(operation)
