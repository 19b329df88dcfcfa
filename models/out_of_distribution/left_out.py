"""How far training rows are outside the columns of other training rows."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from models.config import FeatureConfig
from models.features.columns import Columns, convert
from models.features.moments import Weights
from models.features.rows import evenly_spread
from models.out_of_distribution.columns import SeenColumn, SeenColumns

LEFT_OUT = 4  # of so many rows one is left out
_MAX_ROWS = 20_000


def scores_left_out(
    features: Sequence[FeatureConfig],
    types: Mapping[str, str],
    learned: Columns,
    rate: float,
    weights: Weights | None = None,
) -> Float[np.ndarray, "some"]:
    """The scores of every fourth row against the columns of the others.

    A row is never outside columns that it was counted in, so that only such scores tell how often
    new rows are.

    Args:
        types, rate, weights: as in `FeatureEncoder.fit`.
    """
    rows = evenly_spread(len(learned[features[0].name]), _MAX_ROWS).numpy()
    out, kept = rows[::LEFT_OUT], np.delete(rows, np.s_[::LEFT_OUT])
    if not len(kept):
        return np.zeros(1)
    own = None if weights is None else weights[kept]
    seen, values, new = [], [], {}
    for i, feature in enumerate(features):
        column = learned[feature.name]
        before, after = (
            convert(column[some], types[feature.name], feature.type) for some in (kept, out)
        )
        seen.append(SeenColumn.fit(feature.type, before, rate, own))
        values.append(after)
        if feature.type == "category":
            known = {None, *before.tolist()}
            new[i] = np.array([level not in known for level in after.tolist()], dtype=bool)
    return SeenColumns(tuple(seen)).row_scores(values, new)
