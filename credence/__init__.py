"""Uncertainty-aware predictions: a client of the service, and models in this process.

A name is imported at its first use: `credence --help` imports none of them.
`load` needs the distribution `credence-models`, and the estimators need `credence-server`, which
has both; `credence-client` has all other names.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from credence.client import AsyncClient as AsyncClient
    from credence.client import Client as Client
    from credence.client import TrainedModel as TrainedModel
    from credence.client.prediction import Prediction as Prediction
    from credence.estimators import BayesianClassifier as BayesianClassifier
    from credence.estimators import BayesianRegressor as BayesianRegressor
    from credence.exceptions import CredenceAPIError as CredenceAPIError
    from credence.exceptions import JobFailed as JobFailed
    from credence.exceptions import ServiceUnreachable as ServiceUnreachable
    from credence.scoring.loading import load as load
    from credence.scoring.model import LoadedModel as LoadedModel

__version__ = "0.1.0"  # of both distributions; both pyproject files read it here
DEFAULT_URL = "http://127.0.0.1:8000"

_MODULES = {
    "AsyncClient": "credence.client",
    "BayesianClassifier": "credence.estimators",
    "BayesianRegressor": "credence.estimators",
    "Client": "credence.client",
    "CredenceAPIError": "credence.exceptions",
    "JobFailed": "credence.exceptions",
    "LoadedModel": "credence.scoring.model",
    "Prediction": "credence.client.prediction",
    "ServiceUnreachable": "credence.exceptions",
    "TrainedModel": "credence.client",
    "load": "credence.scoring.loading",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'credence' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
