"""Trains a model on a table that is larger than memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from models.config import ModelConfig
from models.features.columns import Columns
from models.features.splits import Division
from models.model import TrainedModel
from models.tabular.streaming.blocks import ColumnBlocks, Table
from models.tabular.streaming.preparation import prepare_streamed
from models.training.distributed import ALONE
from models.training.train import TrainingRun, begin_stages, fit_problem


@dataclass(frozen=True)
class StreamedModel:
    """A trained model, and the rows that stay in memory: a sample and those held out."""

    model: TrainedModel
    columns: Columns
    division: Division


def train_streamed(  # noqa: PLR0917 - those of `train_problem`, and where rows may lie
    blocks: ColumnBlocks,
    types: Mapping[str, str],
    config: ModelConfig,
    run: TrainingRun,
    folder: Path,
    memory_bytes: int,
    device: str = "cpu",
) -> StreamedModel:
    """`models.training.train.train` for rows on disk, in one process.

    Args:
        folder: an empty folder for the encoded rows. It may be deleted afterwards.
        memory_bytes: about how much the rows and what is fitted to them may take.

    Raises:
        InvalidData, Diverged, Stopped: as `train`.
    """
    table = Table(blocks, config, run.should_stop)
    streamed = prepare_streamed(table, types, folder, memory_bytes)
    stages = begin_stages(config, run, ALONE)
    model, _ = fit_problem(streamed.problem.to(device), stages)
    return StreamedModel(model, streamed.columns, streamed.division)
