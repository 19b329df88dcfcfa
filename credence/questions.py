"""Which columns a question to a model has."""

from credence.types import Feature, Version

TEXT: Feature = {"name": "text", "type": "text"}


def inputs_of(version: Version) -> list[Feature]:
    """Its features; of a forecast the columns of a history, of a language model its texts."""
    if version["task"] == "language_model":
        return [TEXT]
    if version["task"] != "forecasting":
        return version["features"]
    forecast = version["forecast"]
    target: Feature = {"name": version["target"], "type": "number"}
    key: list[Feature] = [{"name": forecast["key"], "type": "category"}] if forecast["key"] else []
    known = [f for f in version["features"] if f["name"] != forecast["key"]]
    return [*known, target, *key]


def future_of(version: Version) -> list[Feature]:
    """What has to be told of the steps ahead: the covariates."""
    given = {version["forecast"]["time"], version["forecast"]["key"]}
    return [feature for feature in version["features"] if feature["name"] not in given]
