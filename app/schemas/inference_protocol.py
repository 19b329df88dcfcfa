"""The Open Inference Protocol v2 as HTTP says it. Tensors' data never pass through here."""

from typing import Annotated, Any, Literal

from pydantic import Field, SkipValidation

from app.schemas.common import Request, Response

Datatype = Literal[
    "BOOL",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FP16",
    "FP32",
    "FP64",
    "BYTES",
]
Name = Annotated[str, Field(min_length=1, max_length=256)]
Size = Annotated[int, Field(ge=0, le=2**63 - 1)]
Scalar = bool | int | float | str | None
MAX_DIMENSIONS = 9  # rows, and eight axes of a tensor in each
MAX_TENSORS = 100_000  # as many columns as a data set may have


class InputParameters(Request):
    """How the data of an input comes."""

    binary_data_size: Size | None = Field(
        None, description="bytes of it after the JSON, instead of `data`"
    )


class InputHeader(Request):
    """An input tensor without its data."""

    name: Name
    shape: Annotated[tuple[Size, ...], Field(min_length=1, max_length=MAX_DIMENSIONS)] = Field(
        description="the number of rows first"
    )
    datatype: Datatype
    parameters: InputParameters | None = None


class InferInput(InputHeader):
    """A whole input tensor, for the documentation."""

    data: SkipValidation[list[Any]] | None = Field(
        None, description="row-major, flat or nested; left out if the data are binary"
    )


class OutputParameters(Request):
    """How the data of an output are wanted."""

    binary_data: bool | None = None


class OutputHeader(Request):
    """An output tensor that is wanted."""

    name: Name
    parameters: OutputParameters | None = None


class InferHeader(Request):
    """A request without the data of its tensors."""

    id: Annotated[str, Field(max_length=256)] | None = Field(None, description="is returned")
    model_name: str | None = Field(None, description="if given, that of the path")
    parameters: dict[str, Scalar] | None = Field(
        None,
        description="`samples`, `seed`, `prune`, `sampler`, `target_mc_error`, `deadline_ms`, "
        '`abstain_above` as in /predict; `intervals` as text ("0.5,0.9"); `timeout` in '
        "microseconds; `binary_data_output`",
    )
    inputs: Annotated[tuple[InputHeader, ...], Field(min_length=1, max_length=MAX_TENSORS)]
    outputs: tuple[OutputHeader, ...] | None = Field(
        None, max_length=64, description="default: all but those that come on request"
    )


class InferRequest(InferHeader):
    """The whole request, for the documentation."""

    inputs: tuple[InferInput, ...]


class TensorMetadata(Response):
    """A tensor that a model takes or gives; −1 is a size that depends on the request."""

    name: str
    datatype: Datatype
    shape: list[int]


class InferOutput(TensorMetadata):
    """An output tensor; binary data stand after the JSON, in the order of the outputs."""

    data: list[Any] | None = None
    parameters: dict[str, Scalar] | None = None


class InferResponse(Response):
    """The response; its parameters are the samples, the seed, the sampler and the variant used."""

    model_name: str
    model_version: str
    id: str | None = None
    parameters: dict[str, Scalar]
    outputs: list[InferOutput]


class ServerMetadata(Response):
    """What answers."""

    name: str = "credence"
    version: str
    extensions: tuple[str, ...] = ("binary_tensor_data",)


class ServerLive(Response):
    """The process answers."""

    live: bool = True


class ServerReady(Response):
    """The prediction engine makes progress."""

    ready: bool = True


class ModelReady(Response):
    """The model is loaded."""

    name: str
    ready: bool = True


class ModelMetadata(Response):
    """The tensors of a version, and all versions."""

    name: str
    versions: list[str]
    platform: str = "credence"
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]
