"""The features that a configuration names, checked against the columns there are."""

from collections.abc import Mapping

from models.config import ModelConfig
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, convertible


def column_of(columns: Mapping[str, ColumnProfile], name: str, path: str) -> ColumnProfile:
    """
    Raises:
        InvalidData: at `path`, naming the columns that there are.
    """
    if name not in columns:
        known = ", ".join(list(columns)[:20])
        raise InvalidData(f"the data set has no column {name!r}; it has {known}", path)
    return columns[name]


def check_features(config: ModelConfig, columns: Mapping[str, ColumnProfile]) -> None:
    """
    Raises:
        InvalidData: at /features/i, for a feature that is not there, the target, given twice, or
            of a type that cannot be read as the one that is asked for.
    """
    names = [feature.name for feature in config.features or ()]
    for i, feature in enumerate(config.features or ()):
        path = f"/features/{i}"
        profile = column_of(columns, feature.name, path)
        if feature.name == config.target:
            raise InvalidData(f"{feature.name!r} is the target and cannot be a feature", path)
        if names.index(feature.name) != i:
            raise InvalidData(f"feature {feature.name!r} is given twice", path)
        if profile.type == "text":
            raise InvalidData(f"{feature.name!r} is text, which only a language model reads", path)
        if not convertible(profile.type, feature.type):
            raise InvalidData(
                f"column {feature.name!r} is of type {profile.type} "
                f"and cannot be read as {feature.type}",
                f"{path}/type",
            )
