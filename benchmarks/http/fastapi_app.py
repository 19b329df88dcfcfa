"""Plain FastAPI: a pydantic body, the predictor in a thread, no batching."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from benchmarks.http.predictor import Predictor, split

app = FastAPI()
predictor = Predictor()
pool = ThreadPoolExecutor(max_workers=1)  # one compute thread, as in all servers


class Body(BaseModel):
    x: list[list[float]]


@app.post("/predict")
async def predict(body: Body) -> dict[str, Any]:
    rows = np.array(body.x, dtype=np.float32)
    loop = asyncio.get_running_loop()
    return split(await loop.run_in_executor(pool, predictor.predict, rows))[0]


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), access_log=False, log_level="warning")
