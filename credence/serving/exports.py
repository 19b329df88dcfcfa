"""Writes a version's archive as a graph for other runtimes: ONNX or torch."""

import json
import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast

import torch

from core.registry import archives
from models.artifact.export import Export, Posterior, build
from models.artifact.files import read_model
from models.exceptions import InvalidInput
from models.tabular.model import TabularModel

Format = Literal["onnx", "torch"]
METADATA = "credence.json"  # in a .pt2; in ONNX a property called "credence"
_MOST_ONNX_BYTES = 2**31 - 1  # of one file: protobuf's limit


def convert(  # noqa: PLR0917 - a name each
    archive: Path,
    output: Path,
    format: Format,
    posterior: Posterior = "full",
    prune: float = 0.0,
    samples: int = 100,
) -> None:
    """Write the model of an archive as a graph.

    Raises:
        InvalidInput: the format cannot hold this model, posterior or size.
        ModuleNotFoundError: the packages of the extra `export` are not installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "artifact"
        archives.unpack(archive, directory, max_bytes=2**63 - 1)
        model = read_model(directory)
    if model.task == "language_model":
        raise InvalidInput("language models cannot be exported as a graph: use the archive")
    if len(model.targets) > 1:
        raise InvalidInput("a model of several targets is no single graph: use the archive")
    export = build(cast(TabularModel, model), posterior=posterior, prune=prune, samples=samples)
    with _quiet():
        _save(export, output, format)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress torch's warnings about optional packages and deprecated names."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        logger.setLevel(level)


def _save(export: Export, output: Path, format: Format) -> None:
    description = json.dumps(export.description)
    rows = torch.export.Dim.AUTO
    shapes = (tuple({0: rows} for _ in export.example),)  # of `*inputs`
    with torch.no_grad():
        program = torch.export.export(export.module, export.example, dynamic_shapes=shapes)
    if format == "torch":
        torch.export.save(program, output, extra_files={METADATA: description})
        return
    _save_onnx(export, program, output, description)


def _save_onnx(export: Export, program: Any, output: Path, description: str) -> None:
    try:
        import onnxscript  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        message = "ONNX needs two more packages: pip install onnx onnxscript"
        raise ModuleNotFoundError(message, name=error.name) from error
    if sum(tensor.nbytes for tensor in export.module.buffers()) > _MOST_ONNX_BYTES:
        raise InvalidInput("more than 2 GB do not fit into one ONNX file: take fewer samples")
    table: dict[Any, Any] = {torch.ops.aten.searchsorted.Tensor: _searchsorted}
    made = torch.onnx.export(
        program, dynamo=True, verbose=False, external_data=False, custom_translation_table=table
    )
    assert made is not None
    _name(made.model.graph, export)
    made.model.metadata_props["credence"] = description
    made.save(output, external_data=False)


def _searchsorted(knots: Any, values: Any, *, right: bool = False, **_: Any) -> Any:
    """`torch.searchsorted` from the right, which ONNX does not have: how many knots are not above.

    Args:
        knots: [lines, knots].
        values: [lines, rows].
    """
    from onnxscript import opset18  # noqa: PLC0415 - of the extra `export`

    op: Any = opset18

    assert right
    axis = op.Constant(value_ints=[-1])
    passed = op.LessOrEqual(
        op.Unsqueeze(knots, op.Constant(value_ints=[1])), op.Unsqueeze(values, axis)
    )
    return op.ReduceSum(op.Cast(passed, to=7), axis, keepdims=0)  # 7 is int64


def _name(graph: Any, export: Export) -> None:
    """Name inputs and outputs; other values are renamed, as they could have these names."""
    for node in graph:
        for value in node.outputs:
            value.name = f"step_{value.name}"
    for value, name in zip(graph.inputs, export.inputs, strict=True):
        value.name = name
    for value, name in zip(graph.outputs, export.outputs, strict=True):
        value.name = name
