"""Numbers of a request that stood for a missing value in the training data, such as -999."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from models.features.columns import Columns, InputColumn, level_text
from models.features.readings import numeric_sentinels
from models.plural import counted


def with_sentinels(features: Sequence[InputColumn]) -> Sequence[InputColumn]:
    """The same columns, read so that such numbers stay."""
    if not any(map(_sentinels, features)):  # as a rule
        return features
    return [_kept(feature) for feature in features]


def without_sentinels(
    columns: Columns, features: Sequence[InputColumn]
) -> tuple[Columns, list[str]]:
    """The columns with NaN for such numbers, and a sentence for each column that had some."""
    made, notes = dict(columns), []
    for feature in features:
        sentinels = _sentinels(feature)
        if not sentinels:
            continue
        values = columns[feature.name]
        found = np.isin(values, sentinels)
        if found.any():
            made[feature.name] = np.where(found, np.nan, values)
            notes.append(_note(feature.name, values[found]))
    return made, notes


def _note(name: str, values: np.ndarray) -> str:
    shown = ", ".join(map(level_text, np.unique(values).tolist()))
    return (
        f"{name!r}: {shown} in {counted(len(values), 'row')}: read as missing, because it stands "
        "for a missing value in the training data"
    )


def _sentinels(feature: InputColumn) -> tuple[float, ...]:
    if feature.type != "number" or feature.reading is None:
        return ()
    return numeric_sentinels(tuple(feature.reading.missing))


def _kept(feature: InputColumn) -> InputColumn:
    sentinels = _sentinels(feature)
    if not sentinels or feature.reading is None:
        return feature
    words = tuple(word for word in feature.reading.missing if not numeric_sentinels((word,)))
    return replace(feature, reading=replace(feature.reading, missing=words))
