"""A model as a version's archive: safetensors and JSON with checksums, no pickle."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from core.registry import archives
from models.artifact.files import read_model, write_model
from models.joint.model import JointModel
from models.tabular.model import TabularModel


def pack(model: TabularModel | JointModel) -> bytes:
    """Return the archive of a model."""
    with tempfile.TemporaryDirectory() as folder:
        write_model(model, Path(folder))
        return b"".join(archives.pack(Path(folder)))


def unpack(data: bytes, tasks: Sequence[str]) -> TabularModel | JointModel:
    """Return the model of an archive.

    It is not tuned for this machine, so that it predicts the same bits everywhere.

    Raises:
        ValueError: if the model has another task.
        NotParseable, Invalid: if the data are no archive of a model.
        CorruptArtifact: if a file differs from its checksum, or a field is out of its range.
    """
    with tempfile.TemporaryDirectory() as folder:
        packed, directory = Path(folder) / "model.tar", Path(folder) / "model"
        packed.write_bytes(data)
        archives.unpack(packed, directory, max_bytes=2**63 - 1)
        model = read_model(directory)
    if model.task not in tasks:
        raise ValueError(f"the model's task is {model.task}, not {' or '.join(tasks)}")
    if isinstance(model, JointModel):
        return model.with_members(replace(one, tuned=False) for one in model.members)
    return replace(cast(TabularModel, model), tuned=False)
