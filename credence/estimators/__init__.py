"""scikit-learn estimators: the service's own recipe, trained here, without a service.

from credence.estimators import BayesianRegressor
mean, std = BayesianRegressor(random_state=0).fit(X, y).predict(X_new, return_std=True)
"""

try:
    import sklearn  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "sklearn":
        raise
    raise ModuleNotFoundError(
        "credence.estimators needs scikit-learn: pip install scikit-learn",
        name="sklearn",
    ) from error

from credence.estimators.base import Uncertainty
from credence.estimators.classifier import BayesianClassifier
from credence.estimators.loading import load
from credence.estimators.regressor import BayesianRegressor

__all__ = ["BayesianClassifier", "BayesianRegressor", "Uncertainty", "load"]
