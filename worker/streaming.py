"""Trains a model on a data set that is larger than memory."""

import tempfile
from pathlib import Path

import structlog

from core.context import Context
from core.datasets.dataset import Dataset
from models.model import TrainedModel
from models.tabular.streaming.limits import is_streamed
from models.tabular.streaming.streamed import train_streamed
from models.training.train import TrainingRun
from worker.baselines.adding import with_baselines
from worker.baselines.columns import Split
from worker.shared_folder import Training

log = structlog.get_logger()


def must_stream(
    context: Context, dataset: Dataset, training: Training, *, compared: bool = False
) -> bool:
    """Whether a training's encoded columns take more memory than `training_memory_bytes`.

    Raises:
        InvalidData: if they do, and the training cannot be streamed. A request is refused before,
            unless the API has another setting than this worker.
    """
    configs, memory = (training.config, *training.others), context.settings.training_memory_bytes
    profiles = {profile.name: profile for profile in dataset.columns}
    return is_streamed(configs, profiles, dataset.rows, memory, compared=compared)


def train_from_disk(
    context: Context, dataset: Dataset, training: Training, run: TrainingRun, folder: Path
) -> TrainedModel:
    """Train in this process; the encoded rows are in `folder` for the time of the training."""
    memory = context.settings.training_memory_bytes
    log.info("the training is streamed from disk", rows=dataset.rows, memory_bytes=memory)
    with (
        context.datasets.blocks(dataset.id, training.types) as blocks,
        tempfile.TemporaryDirectory(dir=folder) as encoded,
    ):
        model, streamed = train_streamed(
            blocks, training.types, training.config, run, Path(encoded), memory, training.device
        )
    split = Split(streamed.division.unscored, streamed.division.scores)
    return with_baselines(model, streamed.columns, training.types, run.should_stop, split)
