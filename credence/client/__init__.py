"""The service from Python: `Client` and `AsyncClient`."""

from credence.client.clients import DEFAULT_URL, AsyncClient, Client
from credence.client.handles import AsyncTrainedModel, TrainedModel
from credence.client.prediction import Interval, Prediction
from credence.client.retries import Retries

__all__ = [
    "DEFAULT_URL",
    "AsyncClient",
    "AsyncTrainedModel",
    "Client",
    "Interval",
    "Prediction",
    "Retries",
    "TrainedModel",
]
