"""LitServe with batching: one worker process."""

import sys
from typing import Any

import litserve
import numpy as np

from benchmarks.http.predictor import BATCH_SECONDS, MAX_BATCH, Predictor, split


class Api(litserve.LitAPI):
    def setup(self, device: str) -> None:
        self.predictor = Predictor()

    def decode_request(self, request: dict[str, Any]) -> np.ndarray:
        return np.array(request["x"][0], dtype=np.float32)

    def batch(self, inputs: list[np.ndarray]) -> np.ndarray:
        return np.stack(inputs)

    def predict(self, x: np.ndarray) -> list[dict[str, Any]]:
        return split(self.predictor.predict(x))

    def unbatch(self, output: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return output

    def encode_response(self, output: dict[str, Any]) -> dict[str, Any]:
        return output


if __name__ == "__main__":
    api = Api(max_batch_size=MAX_BATCH, batch_timeout=BATCH_SECONDS)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1)
    server.run(
        host="127.0.0.1",
        port=int(sys.argv[1]),
        generate_client_file=False,
        log_level="warning",
        access_log=False,
    )
