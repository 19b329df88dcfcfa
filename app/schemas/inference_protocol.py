"""Messages of the Open Inference Protocol v2. Data of tensors are not parsed with these classes."""

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
MAX_DIMENSIONS = 9  # the rows, and the eight axes that a tensor of a row may have
MAX_TENSORS = 100_000  # as many columns as a data set may have


class InputParameters(Request):
    """The place of an input's data."""

    binary_data_size: Size | None = Field(
        None, description="number of its bytes after the JSON, instead of `data`"
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
    """A whole input tensor. This class only documents it."""

    data: SkipValidation[list[Any]] | None = Field(
        None, description="row-major, flat or nested; absent if the data are binary"
    )


class OutputParameters(Request):
    """The format of an output's data."""

    binary_data: bool | None = None


class OutputHeader(Request):
    """A requested output tensor."""

    name: Name
    parameters: OutputParameters | None = None


class InferHeader(Request):
    """A request without the data of its tensors."""

    id: Annotated[str, Field(max_length=256)] | None = Field(
        None, description="any text; the response has the same"
    )
    model_name: str | None = Field(None, description="must be the model in the path")
    parameters: dict[str, Scalar] | None = Field(
        None,
        description="`samples`, `seed`, `prune`, `sampler`, `target_mc_error`, `deadline_ms`, "
        '`explain`, `abstain_above` as in /predict; `intervals` as text ("0.5,0.9"); `timeout` in '
        "microseconds; `binary_data_output`",
    )
    inputs: Annotated[tuple[InputHeader, ...], Field(min_length=1, max_length=MAX_TENSORS)]
    outputs: tuple[OutputHeader, ...] | None = Field(
        None, max_length=64, description="default: the standard outputs; others must be named"
    )


class InferRequest(InferHeader):
    """The whole request. This class only documents it."""

    inputs: tuple[InferInput, ...]


class TensorMetadata(Response):
    """An input or output tensor of a model. A size of −1 depends on the request."""

    name: str
    datatype: Datatype
    shape: list[int]


class InferOutput(TensorMetadata):
    """An output tensor. Binary data follow the JSON, in the order of the outputs."""

    data: list[Any] | None = None
    parameters: dict[str, Scalar] | None = None


class InferResponse(Response):
    """The response. Its parameters are the samples, the seed, the sampler and the variant used."""

    model_name: str
    model_version: str
    id: str | None = None
    parameters: dict[str, Scalar]
    outputs: list[InferOutput]


class ServerMetadata(Response):
    """The server: its name, its version and its extensions."""

    name: str = "credence"
    version: str
    extensions: tuple[str, ...] = ("binary_tensor_data",)


class ServerLive(Response):
    """The process responds."""

    live: bool = True


class ServerReady(Response):
    """The prediction engine makes progress."""

    ready: bool = True


class ModelReady(Response):
    """The model is loaded."""

    name: str
    ready: bool = True


class ModelMetadata(Response):
    """The tensors of a version, and the numbers of all versions."""

    name: str
    versions: list[str]
    platform: str = "credence"
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]
