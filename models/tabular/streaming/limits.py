"""Whether a training is streamed from disk, and what cannot be."""

import math
from collections.abc import Iterator, Mapping, Sequence

from models.config import MLPConfig, ModelConfig
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile
from models.features.expansion import MAX_LEVELS
from models.features.texts import WIDTH as TEXT_WIDTH
from models.inference.registry import method_of

_FLOAT = 4  # bytes
_OTHERS = 2  # columns of an encoded row beside the features: target and weight
_GIBIBYTE = 2**30
# Encoded columns of a feature: of a number its standardised value, normal score, position and
# indicator, of a time the same and three cycles, of a category its slot and two effects.
_WIDTHS = {"number": 4, "boolean": 2, "datetime": 9, "category": 3, "text": TEXT_WIDTH}
_UNKNOWN_AND_MISSING = 2  # slots beside those of levels


def is_streamed(
    configs: Sequence[ModelConfig],
    columns: Mapping[str, ColumnProfile],
    num_rows: int,
    memory_bytes: int,
    *,
    compared: bool = False,
) -> bool:
    """Whether the encoded columns of a training take more memory than it may use.

    Args:
        configs: of each target, with every setting filled in.
        columns: the profiles of the data set.
        compared: whether the training is one of a comparison.

    Raises:
        InvalidData: if they do, and the training cannot be streamed from disk.
    """
    needed = sum(encoded_bytes(config, columns, num_rows) for config in configs)
    if needed <= memory_bytes:
        return False
    for path, what in _not_streamed(configs, compared=compared):
        raise InvalidData(
            f"the encoded columns take about {needed / _GIBIBYTE:.3g} GiB, more than "
            f"CREDENCE_TRAINING_MEMORY_BYTES={memory_bytes} allows in memory, and {what} cannot be "
            "streamed from disk: give fewer rows or columns, or ask the operator for more memory",
            path,
        )
    return True


def encoded_bytes(config: ModelConfig, columns: Mapping[str, ColumnProfile], num_rows: int) -> int:
    """An upper estimate of the size of all encoded rows; 0 of a text, which is read as tokens."""
    if config.task == "language_model":
        return 0
    network = config.network
    coded = isinstance(network, MLPConfig) and network.parts is not None
    coded = coded or config.training.folds is not None
    features = config.features or ()
    widths = [_width(feature.type, columns[feature.name], coded=coded) for feature in features]
    return _FLOAT * num_rows * (sum(widths) + _OTHERS)


def _width(kind: str, profile: ColumnProfile, *, coded: bool) -> int:
    if kind == "tensor":
        return math.prod(profile.shape or ())
    if kind != "category" or coded:
        return _WIDTHS[kind]
    levels = MAX_LEVELS if profile.num_levels is None else profile.num_levels
    return min(levels, MAX_LEVELS) + _UNKNOWN_AND_MISSING


def _not_streamed(configs: Sequence[ModelConfig], *, compared: bool) -> Iterator[tuple[str, str]]:
    """What prevents streaming, each with its place in the request."""
    config = configs[0]
    if compared:
        yield "/methods", "a comparison"
    if len(configs) > 1:
        yield "/target", "a training of several targets"
    if config.task not in ("regression", "classification"):
        yield "/task", f"the task {config.task!r}"
    if any(feature.type == "tensor" for feature in config.features or ()):
        yield "/features", "a tensor feature"
    if not method_of(config.method).reads_from_disk:
        yield "/method/kind", f"method {config.method.kind!r}"
    if config.training.refit:
        yield "/training/refit", "a refit"
