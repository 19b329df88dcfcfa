"""Requests for what was taken out are refused, and stored versions that used it still load."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from models.artifact.schema import parse_document
from models.config import LaplaceConfig, MLPConfig, ModelConfig, StoredConfig
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile
from models.features.targets import NumberTarget
from models.training.recipe import resolve
from tests.models.golden.make import ARTIFACTS

GONE: list[dict[str, Any]] = [
    {"method": {"kind": "bbb", "sharpening": True}},
    {"training": {"schedule": "plateau"}},
]


@pytest.mark.parametrize("settings", GONE)
def test_a_request_is_told_what_to_use_instead(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"taken out after release 0\.1: (leave|take)"):
        TypeAdapter(ModelConfig).validate_python({"target": "text"} | settings)


@pytest.mark.parametrize("settings", [*GONE, {"method": {"kind": "bbb", "sharpening": False}}])
def test_a_stored_configuration_is_read_without_it(settings: dict[str, Any]) -> None:
    read = TypeAdapter(StoredConfig).validate_python({"target": "text"} | settings)
    assert read == ModelConfig(target="text")


@pytest.mark.parametrize("drops_ends", [True, False])
def test_the_older_name_of_a_targets_flag_is_read(*, drops_ends: bool) -> None:
    document = json.loads((ARTIFACTS / "count" / "model.json").read_text())
    document["target"]["shortest"] = drops_ends
    target = parse_document(document)["target"]
    assert isinstance(target, NumberTarget)
    assert target.drops_ends == drops_ends


def test_the_full_curvature_is_of_the_last_layer_alone() -> None:
    config = ModelConfig(
        target="y",
        network=MLPConfig(hidden=(4,)),
        method=LaplaceConfig(kind="laplace", over="all", hessian="full"),
    )
    columns = [ColumnProfile(name=name, type="number") for name in ("x", "y")]
    with pytest.raises(InvalidData, match=r"0\.1: take hessian 'kron' or 'diagonal'"):
        resolve(config, columns, 100)
