"""Each configuration of a method has one class, and the chains are those that say so."""

from dataclasses import dataclass
from typing import get_args

import pytest

from models.config import MAPConfig, MethodConfig
from models.config.methods import ChainConfig
from models.inference.chains import Chains
from models.inference.point import MAP
from models.inference.registry import METHODS, method_of


@dataclass(frozen=True, kw_only=True)
class JitterConfig:
    """Of a method that nobody has registered."""

    kind: str = "jitter"


def test_every_configuration_has_its_method() -> None:
    union = get_args(get_args(MethodConfig)[0])
    settings = {get_args(one)[0] for one in union}
    assert METHODS.keys() == settings
    assert {kind for kind, method in METHODS.items() if issubclass(method, Chains)} == set(
        get_args(ChainConfig)
    )


def test_a_configuration_that_is_not_registered_is_no_point_estimate() -> None:
    with pytest.raises(TypeError, match="no method is registered for JitterConfig"):
        method_of(JitterConfig())  # type: ignore[arg-type]
    assert method_of(MAPConfig(kind="map")) is MAP
