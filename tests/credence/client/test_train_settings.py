"""The types of a training's settings against the service's own schema."""

import dataclasses
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

from app.schemas.training import TargetRequest, TrainRequest
from credence import train_settings as ours
from credence.agents.estimate import Effort
from credence.agents.training import Method
from models import config as theirs
from models.config import Effort as ServiceEffort
from models.config.methods import MethodConfig
from models.config.model import ShapedKind


def kinds(union: Any) -> list[type]:
    return [get_args(one)[0] for one in get_args(get_args(union)[0])]


PAIRS: list[tuple[Any, list[Any]]] = [
    (ours.MethodSettings, kinds(theirs.MethodConfig)),
    (ours.NetworkSettings, kinds(theirs.NetworkConfig)),
    (ours.PriorSettings, list(get_args(theirs.PriorConfig))),
    (ours.KLSettings, [theirs.KLConfig]),
    (ours.PartSettings, [theirs.PartConfig]),
    (ours.SplitSettings, [theirs.SplitBy, theirs.SplitTime]),
    (ours.TrainingSettings, [theirs.TrainingConfig]),
    (ours.LanguageSettings, [theirs.LanguageConfig]),
    (ours.ForecastSettings, [theirs.ForecastConfig]),
    (ours.InputsSettings, [theirs.InputsConfig]),
    (ours.OutOfDistributionSettings, [theirs.OutOfDistributionConfig]),
    (ours.LikelihoodSettings, [theirs.LikelihoodConfig]),
    (ours.FeatureSettings, [theirs.FeatureConfig]),
    (ours.TargetSettings, [TargetRequest]),
    (ours.TrainBody, [TrainRequest]),
]


def fields(kind: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(kind):
        return get_type_hints(kind)
    return {name: field.annotation for name, field in kind.model_fields.items()}


def words(type_: Any) -> Iterator[str]:
    """The words of all literals in a type; those of classes in it are compared elsewhere."""
    if get_origin(type_) is Literal:
        yield from get_args(type_)
    else:
        for one in get_args(type_):
            yield from words(one)


def test_names_and_words_are_those_of_the_service() -> None:
    for settings, configs in PAIRS:
        hints = get_type_hints(settings)
        known = [fields(config) for config in configs]
        assert hints.keys() == {name for one in known for name in one}, settings
        for name, hint in hints.items():
            theirs_ = {word for one in known if name in one for word in words(one[name])}
            assert set(words(hint)) == theirs_, name
    assert set(get_args(ShapedKind)) <= set(get_args(ours.LikelihoodName))


def test_methods_and_efforts_are_those_of_the_service() -> None:
    kinds = {get_args(one)[1].tag for one in get_args(get_args(MethodConfig)[0])}
    assert set(get_args(Method)) == kinds
    assert get_args(Effort) == get_args(ServiceEffort)
