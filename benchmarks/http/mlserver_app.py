"""MLServer with adaptive batching: the model runs in the server's process."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse

from benchmarks.http.predictor import Predictor


class Model(MLModel):
    async def load(self) -> bool:
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._predictor = Predictor()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        rows = NumpyCodec.decode_input(payload.inputs[0])
        loop = asyncio.get_running_loop()
        prediction = await loop.run_in_executor(self._pool, self._predictor.predict, rows)
        outputs = [NumpyCodec.encode_output(name, values) for name, values in prediction.items()]
        return InferenceResponse(model_name=self.name, outputs=outputs)
