"""The service from Python: `Client` and `AsyncClient`.

Frames and predictions are imported where they are used, so that the command line starts quickly.
"""

from credence.client.calls import Retries
from credence.client.clients import AsyncClient, Client
from credence.client.handles import AsyncTrainedModel, TrainedModel

__all__ = ["AsyncClient", "AsyncTrainedModel", "Client", "Retries", "TrainedModel"]
