"""The options of a prediction as keyword arguments, checked as the service checks its requests."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from core.validation import validate_again
from models.prediction.options import PredictOptions


class Options(BaseModel, PredictOptions, frozen=True):
    """The options of `POST /predict` that need no service: not `store`, not `deadline_ms`."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


def read_options(given: Mapping[str, Any]) -> Options:
    """The options; those that are None are as if they were not given.

    Raises:
        Invalid: an option is unknown, or has a wrong type or value.
    """
    named = {name: _plain(value) for name, value in given.items() if value is not None}
    return validate_again(Options, named)


def is_divisible(options: PredictOptions) -> bool:
    """Whether rows may be predicted in blocks: nothing asked for depends on all of them."""
    sums = options.totals is not None and options.totals.over_series
    return not (options.return_draws or sums or options.target_mc_error is not None)


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy as Python's, for JSON."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    return _plain(value.tolist()) if hasattr(value, "tolist") else value
