"""The request of `POST /compare`, and the table of its result."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter

from app.schemas.common import DatasetId, Json, Response
from app.schemas.jobs import JobError
from app.schemas.training import RecipeRequest
from core.jobs.jobs import JobStatus
from models.config import MethodConfig
from models.evaluation.scores import COMPARED, MEASURES
from models.features.columns import ColumnProfile

MethodKind = Literal[
    "bbb",
    "map",
    "mle",
    "ensemble",
    "mc_dropout",
    "swag",
    "laplace",
    "sgld",
    "csgld",
    "metropolis",
]
# One method of each family, and a point estimate for reference. Chains take ten times as long.
USUAL: tuple[MethodKind, ...] = ("bbb", "mc_dropout", "ensemble", "swag", "map")
_METHOD: TypeAdapter[MethodConfig] = TypeAdapter(MethodConfig)


Methods = tuple[MethodKind | MethodConfig, ...]
MAX_METHODS = 16


def _check_count(methods: Methods) -> Methods:
    """Check the number of methods. Pydantic's own check would report an invalid method twice."""
    if not 2 <= len(methods) <= MAX_METHODS:
        raise ValueError(f"names {len(methods)}: give 2 to {MAX_METHODS} methods")
    return methods


class CompareRequest(RecipeRequest):
    """A comparison. `model`, `target` and one of `dataset` and `data` are required."""

    methods: Annotated[Methods, AfterValidator(_check_count)] = Field(
        USUAL,
        description="kinds or settings of methods; the default for texts leaves out swag, which "
        "cannot be fitted to them",
        json_schema_extra={"minItems": 2, "maxItems": MAX_METHODS},
    )
    out_of_distribution: DatasetId | None = Field(
        None, description="rows unlike those of `dataset`, with the same features"
    )

    def method_configs(self, columns: Sequence[ColumnProfile]) -> list[MethodConfig]:
        """The settings of all methods. A method given as its kind has default settings."""
        is_text = ("text", self.target_name) in {(column.type, column.name) for column in columns}
        leaves_out = is_text and "methods" not in self.model_fields_set
        entries: list[Any] = [m for m in self.methods if not (leaves_out and m == "swag")]
        return [_METHOD.validate_python({"kind": m} if isinstance(m, str) else m) for m in entries]

    def given_of(self, index: int) -> tuple[str, ...]:
        """Dotted paths of the settings in the request that apply to one method."""
        sent = self._sent.get("methods")
        method = {} if sent is None else sent[index]
        return self.given({"kind": method} if isinstance(method, str) else method)


def _describe_scores(schema: Json) -> None:
    for score in (*COMPARED, *MEASURES):
        words = ", ".join(filter(None, (score.title, score.direction)))
        number = {"anyOf": [{"type": "number"}, {"type": "null"}], "description": words}
        schema["properties"][score.name] = number


class ComparedMethod(Response):
    """One row of the table: a method, its scores, its size and its speed.

    The scores of a failed training are null.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_describe_scores)
    name: str = Field(
        description="the kind, with the settings that differ from other methods of that kind"
    )
    method: MethodKind
    job: str
    status: JobStatus
    version: int | None
    error: JobError | None
    standard_errors: Json = Field(
        default={}, description="of the scores, by name: how much they vary with the held-out rows"
    )
    compared_rows: int | None = Field(
        None, description="held-out rows by which the methods are compared; null for texts"
    )
    verdict: Literal["best", "no difference", "worse"] | None = Field(
        None,
        description="by log likelihood on the same rows, row by row beside the best method: at "
        "most 5 % of comparisons wrongly call a method worse",
    )
    difference: float | None = Field(
        None, description="mean log likelihood of the best method minus that of this one, in nats"
    )
    difference_error: float | None = Field(
        None, description="the standard error of the paired difference"
    )
    optimism: float | None = Field(
        None,
        description="of the best method: an estimate of how much its log likelihood is too good "
        "because it was chosen among several",
    )


class CompareResponse(Response):
    """One row per method, in the order of the request."""

    data: list[ComparedMethod]
