"""What a job is to do: the message between the service and the worker, JSON only."""

from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from core.exceptions import Invalid
from core.names import check_alias, check_model_name
from models.config import ModelConfig

MAX_METADATA_BYTES = 16_384

JobKind = Literal["train", "evaluate"]


def _named(check: Any) -> AfterValidator:
    """One of `core.names`' checks in pydantic's terms."""

    def validate(value: str) -> str:
        try:
            return str(check(value))
        except Invalid as error:
            raise ValueError(error.errors[0][1]) from error

    return AfterValidator(validate)


def _small_json(value: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(orjson.dumps(value))
    except TypeError as error:  # integers beyond 64 bits, half surrogate pairs
        raise ValueError(f"cannot be stored as JSON: {error}") from error
    if size > MAX_METADATA_BYTES:
        raise ValueError(f"has {size} bytes as JSON: give at most {MAX_METADATA_BYTES}")
    return value


ModelName = Annotated[str, _named(check_model_name)]
Alias = Annotated[str, _named(check_alias)]
Metadata = Annotated[dict[str, Any], AfterValidator(_small_json)]
Identifier = Annotated[str, Field(min_length=1, max_length=64)]


class Spec(BaseModel):
    """What both kinds have in common."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    model: ModelName
    dataset: Identifier


class TrainSpec(Spec):
    """Fit `config` on `dataset`, publish the result under `model`, and let `alias` point at it."""

    config: ModelConfig
    alias: Alias | None = None
    metadata: Metadata = Field(default_factory=dict)


class EvaluateSpec(Spec):
    """Compute the metrics of a stored version on labelled rows."""

    version: Annotated[int, Field(ge=1)]
    prune: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
