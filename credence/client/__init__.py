"""The service from Python: `Client` and `AsyncClient`.

Arrays and frames (`frames`, `prediction`, `asking`) are imported where they are used: the command
line, which needs few of them, is to start at once.
"""

from credence.client.calls import Retries
from credence.client.clients import AsyncClient, Client
from credence.client.handles import AsyncTrainedModel, TrainedModel

__all__ = ["AsyncClient", "AsyncTrainedModel", "Client", "Retries", "TrainedModel"]
