"""What the training series had in their columns, and why a history is unlike them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Len
from jaxtyping import Float

from models.config import FALSE_ALARMS, ModelConfig
from models.config.ranges import NotNegative, Text
from models.features.columns import Columns, convert
from models.out_of_distribution.row_reasons import reasons_of_column, strongest
from models.out_of_distribution.seen_columns import SeenColumn, SeenColumns
from models.prediction.answers.reasons import Reason

_LEAST = 1.0  # ranges: a series may grow, and few held-out steps do not tell by how much


@dataclass(frozen=True)
class SeenSeries:
    """The ranges of the target and of the covariates that are numbers, dates or booleans.

    Args:
        names, stored: of these columns, and their types in the data set.
        threshold: the score (`models.out_of_distribution.seen_columns`) above which a history is
            flagged: the largest one of the held-out steps, and at least 1.
    """

    names: Annotated[tuple[Text, ...], Len(1, 100_000)]
    stored: tuple[Text, ...]
    columns: SeenColumns
    threshold: NotNegative = _LEAST

    @classmethod
    def fit(
        cls,
        config: ModelConfig,
        types: Mapping[str, str],
        learned: Columns,
        held_out: Sequence[Columns],
    ) -> "SeenSeries":
        """Describe the learned steps.

        Args:
            held_out: the columns of each series' last steps.
        """
        kinds = {config.target: "number"} | {
            feature.name: feature.type
            for feature in config.features or ()
            if feature.type in {"number", "datetime", "boolean"}
        }
        seen = [
            SeenColumn.fit(kind, convert(learned[name], types[name], kind), FALSE_ALARMS)
            for name, kind in kinds.items()
        ]
        stored = tuple(types[name] for name in kinds)
        found = cls(tuple(kinds), stored, SeenColumns(tuple(seen)))
        largest = max((float(found.scores(one).max(initial=0)) for one in held_out), default=0.0)
        return cls(found.names, stored, found.columns, max(_LEAST, min(largest, 1e300)))

    def scores(self, columns: Columns) -> Float[np.ndarray, "rows columns"]:
        """The score of every value; 0 where a series has gaps, which are no news."""
        values = self._values(columns)
        scores = self.columns.per_column(values, {})
        return np.where(np.stack([np.isnan(one) for one in values], axis=1), 0.0, scores)

    def reasons(self, columns: Columns) -> tuple[Reason, ...]:
        """Why these steps are unlike those of training, by the farthest value of each column.

        None if all of them are within the threshold.
        """
        scores = self.scores(columns)
        if not scores.size or scores.max() <= self.threshold:
            return ()
        found = []
        for i, (name, values) in enumerate(zip(self.names, self._values(columns), strict=True)):
            row = int(scores[:, i].argmax())
            if scores[row, i] > 0:
                (one,) = reasons_of_column(name, self.columns.columns[i], values[row : row + 1])
                found.append((float(scores[row, i]), one))
        return strongest(found)

    def _values(self, columns: Columns) -> list[np.ndarray]:
        each = zip(self.names, self.stored, self.columns.columns, strict=True)
        return [convert(columns[name], stored, one.kind) for name, stored, one in each]
