"""The tools that start a training or a comparison."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from credence.agents.brief import first, present
from credence.agents.estimate import Effort, comparison_seconds, training_seconds
from credence.agents.jobs import state_of
from credence.agents.tool import DatasetId, Parsed, Tool
from credence.client import AsyncClient
from credence.client.dataset_calls import model_name_of
from credence.model_name import problem
from credence.types import Dataset, Json
from credence.types import Job as JobState

MAX_NOTES = 8
Method = Literal[
    "bbb", "map", "mle", "ensemble", "mc_dropout", "swag", "laplace", "sgld", "csgld", "metropolis"
]


def _model_name(name: str | None) -> str | None:
    if name is not None and (wrong := problem(name)):
        raise ValueError(wrong)
    return name


class Startable(Tool):
    """The arguments of a training and of a comparison."""

    changes = True
    dataset: DatasetId
    target: Annotated[str, Field(description="the column to predict")]
    model: Annotated[
        str | None,
        Field(
            description="name of the model, of lower-case letters, digits, '.', '_' and '-'; "
            "an existing one gets a new version. Default: the data set's name",
        ),
        AfterValidator(_model_name),
    ] = None
    features: Annotated[
        list[str] | None, Parsed, Field(description="columns to predict from; default: all useful")
    ] = None
    task: Annotated[
        Literal["regression", "classification", "forecasting"] | None,
        Field(description="default: by the target's values"),
    ] = None
    settings: Annotated[
        dict[str, Any] | None,
        Parsed,
        Field(
            description="other fields of POST /train by name, such as "
            '{"training": {"groups": "region"}} or {"forecast": {"time": "day", "horizon": 14}}'
        ),
    ] = None
    confirm: Annotated[
        bool,
        Field(description="false: only check and estimate the time; true: start the job"),
    ] = False

    async def run(self, client: AsyncClient) -> Json:
        """The job, or without `confirm` what it would do and take."""
        dataset = await client.dataset(self.dataset, self.target)  # 422 if there is no such column
        request = self.request(self.model or model_name_of(dataset["name"]))
        estimate = {"rough_seconds": self.seconds(dataset), "rows": dataset["rows"]}
        if self.confirm:
            job = await self.submit(client, request)
            notes, more = first(job.get("notes", []), MAX_NOTES, f"GET /jobs/{job['id']}")
            state = state_of(client, job) | present(notes=notes, more_notes=more)
            return {"started": True, "estimate": estimate} | state
        return {"started": False} | present(
            would_send=request,
            estimate=estimate | {"note": "of one idle core, up to three times more or less"},
            warnings=[f["message"] for f in dataset["findings"] if f["severity"] != "info"][:10],
            next="if this is right, call it again with confirm=true",
        )

    def request(self, model: str) -> Json:
        """The body of the request."""
        named = present(features=self.features, task=self.task)
        return {"model": model, "dataset": self.dataset, "target": self.target} | named

    def seconds(self, dataset: Dataset) -> tuple[int, int]:
        """The time of the job, between these."""
        raise NotImplementedError

    async def submit(self, client: AsyncClient, request: Json) -> JobState:
        """The queued job."""
        raise NotImplementedError


class Train(Startable):
    """Train a model that predicts a column of a data set, with its uncertainty.

    Without `confirm` nothing starts: the answer has an estimate of the time and what is suspicious
    in the data. With `confirm=true` a job starts; follow it with `job`. The settings are chosen on
    the rows unless you name them.
    """

    effort: Annotated[
        Effort | None,
        Field(description="how much is tried to find the best settings; default: standard"),
    ] = None
    alias: Annotated[
        str | None, Field(description="alias that the new version gets, such as champion")
    ] = None

    def request(self, model: str) -> Json:
        """The body of `POST /train`."""
        request = super().request(model) | present(alias=self.alias) | (self.settings or {})
        if self.effort is not None:
            training = request.get("training", {})
            request["training"] = {"effort": self.effort} | training
        return request

    def seconds(self, dataset: Dataset) -> tuple[int, int]:
        """The time of a race of this effort."""
        return training_seconds(dataset, self.effort or "standard")

    async def submit(self, client: AsyncClient, request: Json) -> JobState:
        """The queued training."""
        return await client.submit_train(request)


class Compare(Startable):
    """Train several methods on the same rows and compare their scores.

    Without `confirm` nothing starts: the answer has an estimate of the time. With `confirm=true` a
    job starts; `job` shows its table at the end. Each method becomes a version of the model.
    """

    methods: Annotated[
        tuple[Method, ...],
        Parsed,
        Field(
            min_length=2,
            max_length=8,
            description="bbb is the usual one: a Gaussian over every weight",
        ),
    ] = ("bbb", "mc_dropout", "ensemble", "swag", "map")

    def request(self, model: str) -> Json:
        """The body of `POST /compare`."""
        return super().request(model) | {"methods": list(self.methods)} | (self.settings or {})

    def seconds(self, dataset: Dataset) -> tuple[int, int]:
        """The time of the methods one after the other."""
        return comparison_seconds(dataset, len(self.methods))

    async def submit(self, client: AsyncClient, request: Json) -> JobState:
        """The queued comparison."""
        return await client.submit_compare(request)
