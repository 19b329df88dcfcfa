"""Values of a request that stood for a missing one in the training data: -999, 9999-12-31."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from models.features.columns import (
    Columns,
    InputColumn,
    are_sentinels,
    blanked,
    level_text,
    sentinels_of,
)
from models.messages import counted


def with_sentinels(features: Sequence[InputColumn]) -> Sequence[InputColumn]:
    """The same columns, read so that such values stay."""
    if not any(map(_has_sentinels, features)):  # as a rule
        return features
    return [_kept(feature) for feature in features]


def without_sentinels(
    columns: Columns, features: Sequence[InputColumn]
) -> tuple[Columns, list[str]]:
    """The columns without such values, and a sentence for each column that had some."""
    made, notes = dict(columns), []
    for feature in features:
        if feature.reading is None or not _has_sentinels(feature):
            continue
        values = columns[feature.name]
        found = are_sentinels(values, feature.reading)
        if found.any():
            made[feature.name] = blanked(values, found)
            notes.append(_note(feature.name, values[found]))
    return made, notes


def _note(name: str, values: np.ndarray) -> str:
    if values.dtype.kind == "M":
        values = values.astype("datetime64[D]")
    shown = ", ".join(level_text(value) for value in np.unique(values).tolist())
    return (
        f"{name!r}: {shown} in {counted(len(values), 'row')}: read as missing, because it stands "
        "for a missing value in the training data"
    )


def _has_sentinels(feature: InputColumn) -> bool:
    return feature.reading is not None and bool(sentinels_of(feature.reading))


def _kept(feature: InputColumn) -> InputColumn:
    if feature.reading is None or not _has_sentinels(feature):
        return feature
    reading = feature.reading
    words = [w for w in reading.missing if not sentinels_of(replace(reading, missing=(w,)))]
    return replace(feature, reading=replace(reading, missing=tuple(words)))
