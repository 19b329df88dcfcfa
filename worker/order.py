"""What a training job comes down to: the arguments of `models.training.train.train`, as plain
data.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from models.config import ModelConfig
from models.features.columns import Columns
from models.model import TrainedModel
from models.training.progress import Progress
from models.training.train import train


@dataclass(frozen=True)
class Order:
    """Carried out here, or written down for other processes (`worker.exchange`)."""

    config: ModelConfig
    types: Mapping[str, str]  # of the columns that are needed
    device: str
    processes: int
    threads: int  # of each process
    checkpoint_dir: Path
    checkpoint_seconds: float

    def carry_out(
        self,
        columns: Columns,
        on_progress: Callable[[Progress], None],
        should_stop: Callable[[], bool],
    ) -> TrainedModel:
        """Trains in this process; raises what `models.training.train.train` does."""
        torch.set_num_threads(self.threads)
        return train(
            columns,
            self.types,
            self.config,
            device=self.device,
            on_progress=on_progress,
            should_stop=should_stop,
            checkpoint_dir=self.checkpoint_dir,
            checkpoint_seconds=self.checkpoint_seconds,
        )
