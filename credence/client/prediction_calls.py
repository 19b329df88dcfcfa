"""Predictions, feedback on them, and the service's metrics."""

from typing import TYPE_CHECKING, Any, Unpack

from credence.client.calls import Calls
from credence.client.model_calls import ModelCalls
from credence.client.operations import Operation, method
from credence.client.requests import creation, path, request, text
from credence.types import (
    Feedback,
    Json,
    PredictionAnswer,
    PredictSettings,
    RollingFeedback,
    TextAnswer,
)

if TYPE_CHECKING:
    from credence.client.prediction import Prediction


class PredictionCalls(Calls):
    """Predict, and send true values."""

    @method
    def predict(
        self,
        model: str,
        rows: Any,
        *,
        version: int | str | None = None,
        future: Any = None,
        **settings: Unpack[PredictSettings],
    ) -> "Operation[Prediction]":
        """Predict rows; many rows are sent in several requests.

        Args:
            rows: the path of a file (CSV, JSON lines, Excel, Parquet, …), which is read as the
                training data were; or a frame of pandas, polars or pyarrow, a dict of arrays, a
                list of records, or a matrix whose columns are the features in order. Extra columns
                are ignored. For a forecast, the history of one series or of several.
            version: number or alias; the newest by default.
            future: the covariates for each step ahead, if a forecast has any.
            settings: options of the prediction; of a file also `delimiter`, `encoding`, `decimal`,
                `sheet` and others, as of `upload`.

        Raises:
            ValueError: a feature has no column.
        """
        from credence.client.rows import predict_rows  # noqa: PLC0415

        described = yield from ModelCalls.version(self, model, version)
        return (yield from predict_rows(self, described, rows, settings, future))

    @method
    def predict_texts(
        self, model: str, texts: list[str], *, version: int | str | None = None, top: int = 10
    ) -> Operation[TextAnswer]:
        """The likelihood of texts under a language model, and probable next tokens."""
        document: Json = {"model": model, "inputs": texts, "top": top}
        if version is not None:
            document["version"] = version
        return self.call("POST", "/predict", json=document, repeatable=True)

    @method
    def submit_predict(self, request_: Json) -> Operation[PredictionAnswer]:
        """Predict; `request_` is the body of `POST /predict`, the result its JSON response."""
        if request_.get("store"):
            return self.create("/predict", json=request_)
        return self.send(request("POST", "/predict", json=request_, repeatable=True))

    @method
    def submit_feedback(self, request_: Json) -> Operation[Feedback]:
        """Send true values; `request_` is the body of `POST /feedback`."""
        return self.send(creation("/feedback", json=request_))

    @method
    def withdraw_feedback(self, feedback_id: str) -> Operation[None]:
        """Delete the scores of true values by the `id` in the response that they got."""
        return self.call("DELETE", path("feedback", feedback_id))

    @method
    def rolling_feedback(
        self, name: str, version: int | str | None = None
    ) -> Operation[RollingFeedback]:
        """Scores of the newest labelled rows of a version, by default of the newest version."""
        return self.call("GET", path("models", name, "feedback"), params={"version": version})

    @method
    def metrics(self) -> Operation[str]:
        """The service's metrics in Prometheus' text format."""
        return self.call("GET", "/metrics", read=text)
