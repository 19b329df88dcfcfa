"""The service from Python: `Client` and `AsyncClient`.

Frames and predictions are imported where they are used, so that the command line starts quickly.
"""

from credence.client.clients import AsyncClient, Client
from credence.client.handles import AsyncTrainedModel, TrainedModel
from credence.client.retries import Retries

__all__ = ["AsyncClient", "AsyncTrainedModel", "Client", "Retries", "TrainedModel"]
