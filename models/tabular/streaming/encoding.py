"""The third pass: encodes the rows to learn from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from models.features.columns import Columns
from models.features.effects import target_scores
from models.features.feature_encoder import FeatureEncoder
from models.features.targets import ClassTarget
from models.tabular.model import TabularModel
from models.tabular.preparation import fitted_weights, row_weights
from models.tabular.streaming.blocks import Table
from models.tabular.streaming.gathering import Gathered, needed_columns
from models.tabular.streaming.hashing import row_hashes
from models.tabular.streaming.sets import TRAINING, Sets
from models.tabular.streaming.shuffled import EncodedPart


@dataclass(frozen=True)
class RowEncoder:
    """Encodes rows as `prepare` encodes those of a table in memory.

    Args:
        by_fold: the encoder of each fold's rows: effects of levels are those of other folds' rows.
        class_factors: weights of classes, by their number; None if all are 1.
    """

    model: TabularModel
    by_fold: Mapping[int, FeatureEncoder]
    class_factors: Float[np.ndarray, "classes"] | None

    @classmethod
    def of(cls, model: TabularModel, gathered: Gathered) -> "RowEncoder":
        """An encoder whose effects and class weights are those of the gathered rows."""
        config, division = model.config, gathered.division
        places = np.union1d(division.training, division.stopping)
        classes, factors = None, None
        own = row_weights(config, gathered.columns)
        weights = own
        if isinstance(model.target, ClassTarget):
            classes = model.target.encode(gathered.columns[config.target]).numpy()
            weights = fitted_weights(config, own, classes, places)
            factors = _class_factors(classes, weights, own, len(model.target.classes))
        if not model.encoder.has_effects:
            return cls(model, {}, factors)
        learned = {name: values[places] for name, values in gathered.columns.items()}
        values = learned[config.target] if classes is None else classes[places]
        learned_weights = None if weights is None else weights[places]
        scores = target_scores(values, classes=classes is not None, weights=learned_weights)
        folds = gathered.folds[places]
        by_fold = model.encoder.by_fold(learned, scores, folds, learned_weights)
        return cls(model, by_fold, factors)

    def inputs(
        self, columns: Columns, folds: Int[np.ndarray, "rows"]
    ) -> Float[np.ndarray, "rows width"]:
        """The compact rows, with the numbers of groups if there are any."""
        if not self.by_fold:
            encoded = self.model.encoder.encode_inputs(columns)
        else:
            encoded = self._by_fold(columns, folds)
        return self.model.with_groups(encoded, columns).numpy()

    def weights(self, columns: Columns, targets: np.ndarray) -> Float[np.ndarray, "rows"] | None:
        own = row_weights(self.model.config, columns)
        if self.class_factors is None:
            return own
        factors = self.class_factors[targets]
        return factors if own is None else own * factors

    def _by_fold(self, columns: Columns, folds: Int[np.ndarray, "rows"]) -> torch.Tensor:
        parts, order = [], []
        for fold in np.unique(folds).tolist():
            rows = np.flatnonzero(folds == fold)
            side = {name: values[rows] for name, values in columns.items()}
            encoder = self.by_fold.get(fold, self.model.encoder)  # a fold that no row sampled
            parts.append(encoder.encode_inputs(side))
            order.append(rows)
        encoded = torch.cat(parts)
        encoded[np.concatenate(order)] = encoded.clone()
        return encoded


def encoded_parts(table: Table, sets: Sets, encoder: RowEncoder) -> Iterator[EncodedPart]:
    """The rows to learn from, block by block.

    Raises:
        Stopped: between two blocks.
    """
    config = table.config
    for block in table.usable(needed_columns(table)):
        own = block.part(sets.of_rows(block) == TRAINING)
        folds = sets.folds(own)
        targets = encoder.model.target.encode(own.columns[config.target]).numpy()
        yield EncodedPart(
            row_hashes(own.rows, config.training.seed, "order"),
            encoder.inputs(own.columns, folds),
            targets,
            folds,
            encoder.weights(own.columns, targets),
        )


def _class_factors(
    classes: Int[np.ndarray, "rows"],
    weights: Float[np.ndarray, "rows"] | None,
    own: Float[np.ndarray, "rows"] | None,
    count: int,
) -> Float[np.ndarray, "classes"] | None:
    """The factors by which `fitted_weights` multiplies the weights of the rows of each class."""
    if weights is None or weights is own:
        return None
    factors = np.ones(count)
    factors[classes] = weights if own is None else weights / own
    return factors
