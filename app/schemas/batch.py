"""Offline predictions as HTTP asks for them."""

from typing import Annotated

from pydantic import Field

from app.schemas.common import DatasetId, ModelName, Reference, Request
from app.schemas.predictions import Level
from models.prediction.prediction import PredictOptions, Sampler


class BatchRequest(Request):
    """A model, a data set, and the options of `POST /predict`."""

    model: ModelName
    dataset: DatasetId
    version: Reference | None = Field(None, description="number or alias; default: the newest")
    samples: Annotated[int, Field(ge=1)] = Field(
        100, description="weight draws per row, at most CREDENCE_MAX_SAMPLES"
    )
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        None, description="default: the version's own"
    )
    prune: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(0.0, description="a stored variant")
    intervals: Annotated[tuple[Level, ...], Field(max_length=16)] = (0.9,)
    sampler: Sampler | None = Field(None, description="default: the best that the model has")
    chunk_rows: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        None, description="rows that one worker predicts at a time; default: some seconds of work"
    )

    @property
    def options(self) -> PredictOptions:
        """As `models` takes them, before they are settled."""
        return PredictOptions(
            samples=self.samples,
            seed=self.seed,
            prune=self.prune,
            intervals=self.intervals,
            sampler=self.sampler,
        )
