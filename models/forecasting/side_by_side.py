"""How a forecaster compares with a simple method at the same origins."""

from collections.abc import Mapping
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import Json
from models.forecasting.dependence import Dependence

Verdict = Literal["better", "no difference", "worse"]
PerStep = Float[Tensor, "steps"]
_SURE = 2  # standard errors


def advantage(
    own: Mapping[str, PerStep], theirs: Mapping[str, PerStep], dependence: Dependence
) -> Json:
    """By how much this model's CRPS is lower per step, its standard error, and a verdict on it.

    Nothing if a score is not finite. The steps of each forecast are consecutive.
    """
    differences = theirs["crps"].cpu().double() - own["crps"].cpu().double()
    if not bool(torch.isfinite(differences).all()):
        return {}
    difference, error = float(differences.mean()), dependence.of_differences(differences.numpy())
    return {
        "advantage": difference,
        "advantage_error": error,
        "verdict": verdict(difference, error),
    }


def verdict(difference: float, error: float | None) -> Verdict:
    """Whether this model is better or worse by more than two standard errors."""
    if error is None or abs(difference) <= _SURE * error:
        return "no difference"
    return "better" if difference > 0 else "worse"
