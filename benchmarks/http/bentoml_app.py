"""BentoML with adaptive batching: one worker."""

from typing import Any

import bentoml
import numpy as np

from benchmarks.http.predictor import MAX_BATCH, Predictor, split


@bentoml.service(workers=1, logging={"access": {"enabled": False}})
class Service:
    def __init__(self) -> None:
        self.predictor = Predictor()

    @bentoml.api(batchable=True, max_batch_size=MAX_BATCH)
    def predict(self, x: np.ndarray) -> list[dict[str, Any]]:
        return split(self.predictor.predict(x.astype(np.float32)))
