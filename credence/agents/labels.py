"""The tools about true values: which to ask for, and whether a model still fits them."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from credence.agents.brief import present, scores
from credence.agents.jobs import ended
from credence.agents.tool import (
    DatasetId,
    ModelName,
    Parsed,
    Rows,
    Tool,
    VersionReference,
    Wait,
    page,
)
from credence.client import AsyncClient
from credence.feedback_verdict import leaves, sentence
from credence.types import Json

ALARM = "the newest true values fit the predictions worse than chance explains: train again"
MAX_LABELLED = 50
MAX_READ = 1_000  # the first rows of a data set, which one request may read


class RowsToLabel(Tool):
    """Choose the rows of a data set whose labels would teach a model most.

    The data set has the model's features; rows that already have the target are left out. The best
    row comes first, and like rows are chosen once. Rows are counted from 0.
    """

    changes = True
    model: ModelName
    version: VersionReference = None
    dataset: DatasetId
    k: Annotated[int, Field(ge=1, le=MAX_LABELLED, description="how many rows")] = 10
    wait_seconds: Wait = 30

    async def run(self, client: AsyncClient) -> Json:
        """The rows with their values, or the job that looks for them."""
        request = {"dataset": self.dataset, "k": self.k} | present(version=self.version)
        job = await client.submit_acquire(self.model, request)
        state = await ended(client, job["id"], self.wait_seconds)
        if state["status"] != "succeeded":
            return state
        return await chosen_rows(client, self.dataset, state["result"])


async def chosen_rows(client: AsyncClient, dataset: str, result: Any) -> Json:
    """The chosen rows with what their labels tell; values of rows that one request reads."""
    last = max(result["rows"], default=0)
    readable = min(last + 1, MAX_READ)
    values = await client.dataset_rows(dataset, readable)
    rows = [
        {"row": row, "information_nats": nats}
        | ({"values": values[row]} if row < len(values) else {})
        for row, nats in zip(result["rows"], result["information"], strict=True)
    ]
    return present(
        rows=rows,
        candidates=result["candidates"],
        next="ask a person for the labels of these rows, add them to the training data, "
        "and train the model again",
    )


class SendFeedback(Tool):
    """Send the true values of rows, to see whether a model is still right.

    Give `rows` as for predict, or the id of a stored `prediction`. The answer has a
    `verdict`, the scores of these rows, and of the newest labelled rows of the version together.
    """

    changes = True
    truth: Annotated[
        list[int | float | str | bool | None],
        Parsed,
        Field(min_length=1, max_length=100, description="a value per row, null if unknown"),
    ]
    model: Annotated[str | None, Field(description="name of the model, with rows")] = None
    version: VersionReference = None
    rows: Annotated[Rows | None, Field(description="records with every feature")] = None
    prediction: Annotated[
        str | None, Field(description="id from predict with store=true, instead of rows")
    ] = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.prediction is None) == (self.rows is None or self.model is None):
            raise ValueError("give model and rows, or prediction")
        return self

    async def run(self, client: AsyncClient) -> Json:
        """The scores of these rows and of the newest ones."""
        rows = present(model=self.model, version=self.version, inputs=self.rows)
        named = {"prediction": self.prediction} if self.prediction else rows
        feedback = await client.submit_feedback({**named, "truth": self.truth})
        rolling = feedback["rolling"]["metrics"]
        return present(
            verdict=sentence(feedback["rolling"]),
            feedback=feedback["id"],
            model=feedback["model"],
            version=feedback["version"],
            scores=scores(feedback["metrics"]),
            newest_rows=scores(rolling),
            expected_log_likelihood=rolling.get("expected_log_likelihood"),
            alarm=ALARM if leaves(feedback["rolling"]) else None,
            page=page(client, f"/models/{feedback['model']}/versions/{feedback['version']}"),
        )
