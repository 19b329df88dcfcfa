"""The columns that a training reads."""

from models.config import ModelConfig, SplitBy, SplitTime


def columns_needed(config: ModelConfig) -> list[str]:
    """The distinct names of the features and target, and of the columns that settings name."""
    names = [feature.name for feature in config.features or ()]
    names.append(config.target)
    if config.weight is not None:
        names.append(config.weight)
    match config.training.split:
        case SplitBy(by=name) | SplitTime(time=name):
            names.append(name)
    if config.training.groups is not None:
        names.append(config.training.groups)
    if config.forecast is not None and config.forecast.key is not None:
        names.append(config.forecast.key)
    return list(dict.fromkeys(names))
