"""Boosted trees whose predictions are inputs of a table's networks.

Trees find steps and interactions that a network learns late from a few thousand rows; the network
learns the rest, and how sure to be. This is stacking (Wolpert 1992): a learning row gets the
prediction of trees that did not learn from its fold, a new row that of trees of all rows.

scikit-learn fits the trees. To predict, they are heaps of one depth: node i of a level is followed
by nodes 2i and 2i + 1 of the next, and a branch that ends early goes on with two equal ones. So all
trees take a step at once for all rows, in torch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Num
from torch import Tensor

from models.features.rows import evenly_spread
from models.tensors import TensorRecord, named_tensors, restored

MOST_CLASSES = 8  # each has a forest
MOST_TREES = 120  # of a row, in all forests: 1,000 rows take 3 to 5 ms
_MOST_DEPTH = 8  # of stored trees
FARTHEST = 5.0  # deviations of a target: outliers would have trees of their own
_DEPTH, _RATE = 5, 0.1
LEAST_LEAVES = 20, 2  # rows: few rows in a leaf find pairs and rare cases, many find less noise
LEAST_ROWS = 10 * LEAST_LEAVES[0]  # fewer fill too few leaves for steps and interactions
_AT_ONCE = 20  # trees between two looks at the out-of-fold loss
_FITTED_ROWS = 50_000  # of a forest, and as many choose how many trees: a few seconds
_PREFIX = "boosted"  # of the tensors in a file
BLOCK = 256  # rows whose steps stay in the processor's cache

Compact = Float[Tensor, "rows compact"]
Outputs = Float[Tensor, "rows outputs"]


class Labelled(NamedTuple):
    """Encoded rows with standardised numbers or classes, and the weights if there are some."""

    rows: Compact
    targets: Num[Tensor, "rows"]
    weights: Float[Tensor, "rows"] | None

    def some(self, index: Int[Tensor, "some"]) -> "Labelled":
        weights = None if self.weights is None else self.weights[index]
        return Labelled(self.rows[index], self.targets[index], weights)


@dataclass(frozen=True)
class BoostedTrees(TensorRecord):
    """A forest for each output. A row goes right at a node if its column is above the threshold.

    Args:
        columns: of encoded rows, the one of each node but the leaves, level by level.
        thresholds: of the same nodes.
        values: of the leaves.
        base: of each output, what its trees are added to.
    """

    columns: Int[Tensor, "outputs trees nodes"]
    thresholds: Float[Tensor, "outputs trees nodes"]
    values: Float[Tensor, "outputs trees leaves"]
    base: Float[Tensor, "outputs"]

    @classmethod
    def fit(  # noqa: PLR0917 - rows and their folds, and what trees may be like
        cls,
        labelled: Labelled,
        folds: Int[Tensor, "rows"],
        columns: Sequence[int],
        classes: int | None = None,
        leaves: Sequence[int] = LEAST_LEAVES,
        most: int = MOST_TREES,
    ) -> "Stacked | None":
        """The trees of all rows, and for each row the outputs of the trees of the other folds.

        Outputs are predicted means, or log odds of classes, standardised over the rows. All folds
        have leaves of equally many rows at least, and the same number of trees: those with the
        least out-of-fold loss, so that no rows are set aside for it. None if this is not below the
        loss of no trees by two standard errors: the choice among so many finds a gain in noise.

        Args:
            folds: the number of each row's fold.
            columns: of encoded rows, those that the trees may read.
            classes: how many there are; None for numbers.
            leaves: least numbers of rows in a leaf that are tried.
            most: trees of a row, in all forests.
        """
        outputs = 1 if classes is None or classes == 2 else classes
        learner, parts = partial(_Learner, columns, classes), list(_parts(labelled, folds))
        tried = [_Grown.of(partial(learner, leaf), parts, most // outputs) for leaf in leaves]
        best = min(tried, key=lambda grown: grown.losses[:, 1].mean())
        gain = best.losses[:, 0] - best.losses[:, 1]
        if not gain.mean() > 2 * gain.std() / len(gain) ** 0.5:
            return None
        found = torch.empty(len(labelled.rows), outputs)
        for part, own in zip(parts, best.trees, strict=True):
            for some in part.left_out.split(BLOCK):
                found[some] = own(labelled.rows[some])
        mean, std = found.mean(0), found.std(0)
        trees = best.learner(labelled).grow(best.num_trees)
        scaled = replace(
            trees, values=trees.values / std.view(-1, 1, 1), base=(trees.base - mean) / std
        )
        return Stacked(scaled, (found - mean) / std, leaves[tried.index(best)])

    @classmethod
    def of(cls, model: Any, columns: Sequence[int]) -> "BoostedTrees":
        """The trees of a fitted `HistGradientBoosting…` of scikit-learn, without categories.

        Args:
            columns: of encoded rows, which its features are.
        """
        forests = [
            [tree.nodes for tree in forest]
            for forest in zip(*model._predictors, strict=True)  # noqa: SLF001
        ]
        depth = max(1, *(int(tree["depth"].max()) for forest in forests for tree in forest))
        parts = zip(*(_in_heaps(forest, depth) for forest in forests), strict=True)
        features, thresholds, values = (torch.from_numpy(np.stack(part)) for part in parts)
        base = torch.from_numpy(model._baseline_prediction.ravel()).float()  # noqa: SLF001
        return cls(torch.as_tensor(columns)[features].int(), thresholds, values, base)

    @property
    def outputs(self) -> int:
        return len(self.base)

    def first(self, count: int) -> "BoostedTrees":
        """The first trees of each forest."""
        columns, thresholds, values = (
            part[:, :count] for part in (self.columns, self.thresholds, self.values)
        )
        return BoostedTrees(columns, thresholds, values, self.base)

    def __call__(self, rows: Compact) -> Outputs:
        """base + the sum of the trees, for each output.

        Of many rows some at a time (`BLOCK`): the steps of all trees are in memory.
        """
        return self.of_trees(rows).sum(2) + self.base

    def of_trees(self, rows: Compact) -> Float[Tensor, "rows outputs trees"]:
        """The value of the leaf that each row reaches in each tree."""
        x, count = rows.T, rows.shape[0]
        ((column, threshold), *below), roots = self.ready
        place = 2 * roots + (x.index_select(0, column) > threshold.unsqueeze(1))
        for columns, thresholds in below:
            nodes = place.flatten()
            own = x.gather(0, columns.index_select(0, nodes).view(-1, count))
            place = 2 * place + (own > thresholds.index_select(0, nodes).view(-1, count))
        found = self.values.flatten().index_select(0, place.flatten())
        return found.view(*self.values.shape[:2], count).movedim(2, 0)

    @cached_property
    def ready(self) -> tuple[Sequence[tuple[Tensor, Tensor]], Int[Tensor, "trees 1"]]:
        """What a call needs: columns and thresholds of each level, and the places of the roots."""
        outputs, trees, nodes = self.columns.shape
        cuts = [2**level - 1 for level in range(1, (nodes + 1).bit_length() - 1)]
        parts = (part.tensor_split(cuts, 2) for part in (self.columns.long(), self.thresholds))
        levels = [(c.flatten(), t.flatten()) for c, t in zip(*parts, strict=True)]
        return levels, torch.arange(outputs * trees, device=self.columns.device).unsqueeze(1)

    def pack(self) -> dict[str, Tensor]:
        """The tensors to store."""
        return dict(named_tensors(self, _PREFIX))

    @classmethod
    def unpack(cls, tensors: Mapping[str, Tensor], num_columns: int) -> "BoostedTrees | None":
        """The inverse of `pack`; None if there are no trees among the tensors.

        Args:
            num_columns: of encoded rows.

        Raises:
            ValueError: if a tensor is missing, they are no such trees, or read other columns.
        """
        if not any(name.startswith(f"{_PREFIX}.") for name in tensors):
            return None
        trees = restored(cls, _PREFIX, tensors)
        (outputs, count, leaves), columns = trees.values.shape, trees.columns
        nodes = (outputs, count, leaves - 1)
        is_whole = leaves in [2**depth for depth in range(1, _MOST_DEPTH + 1)]
        shapes = columns.shape, trees.thresholds.shape, trees.base.shape
        if not is_whole or shapes != (nodes, nodes, (outputs,)) or outputs * count > MOST_TREES:
            raise ValueError(f"{list(trees.values.shape)} leaves are of no boosted trees")
        if columns.min() < 0 or columns.max() >= num_columns:
            raise ValueError(f"boosted trees read other columns than the {num_columns} of a row")
        return trees


class Stacked(NamedTuple):
    """The trees of all rows, each row's outputs of trees without its fold, and the chosen leaf."""

    trees: BoostedTrees
    outputs: Outputs
    leaf: int


class _Part(NamedTuple):
    """A fold: its rows, some of them that tell how many trees are best, and the other folds."""

    left_out: Int[Tensor, "some"]
    tested: Labelled
    others: Labelled


def _parts(labelled: Labelled, folds: Int[Tensor, "rows"]) -> Iterator[_Part]:
    numbers = folds.unique()
    for fold in numbers:
        own = torch.nonzero(folds == fold).flatten()
        tested = own[evenly_spread(len(own), _FITTED_ROWS // len(numbers))]
        others = torch.nonzero(folds != fold).flatten()
        yield _Part(own, labelled.some(tested), labelled.some(others))


@dataclass(frozen=True, eq=False)
class _Grown:
    """Trees of all folds but one for each fold: as many as have the least loss.

    `losses` are those of no trees, and of these.
    """

    learner: "Callable[[Labelled], _Learner]"
    trees: Sequence[BoostedTrees]
    num_trees: int
    losses: Float[Tensor, "tested 2"]

    @classmethod
    def of(
        cls, learner: "Callable[[Labelled], _Learner]", parts: Sequence[_Part], most: int
    ) -> "_Grown":
        learners = [learner(part.others) for part in parts]
        count = best = 0
        while count < most and best >= count - _AT_ONCE:
            count = min(count + _AT_ONCE, most)
            grown = [each.grow(count) for each in learners]
            pairs = zip(grown, parts, strict=True)
            losses = torch.cat([_losses_by_count(trees, part.tested) for trees, part in pairs])
            best = int(losses.mean(0).argmin())
        trees = [each.first(best) for each in grown]
        return cls(learner, trees, best, losses[:, [0, best]])


class _Learner:
    """Trees of some rows, which grow in number."""

    def __init__(
        self, columns: Sequence[int], classes: int | None, leaf: int, labelled: Labelled
    ) -> None:
        from sklearn.ensemble import (  # noqa: PLC0415 - predictions do without
            HistGradientBoostingClassifier,
            HistGradientBoostingRegressor,
        )

        kind = HistGradientBoostingRegressor if classes is None else HistGradientBoostingClassifier
        self._labelled = labelled.some(evenly_spread(len(labelled.rows), _FITTED_ROWS))
        self._columns = list(columns)
        self._model: Any = kind(
            learning_rate=_RATE,
            max_depth=_DEPTH,
            max_leaf_nodes=None,
            min_samples_leaf=leaf,
            early_stopping=False,
            warm_start=True,
            random_state=0,
        )

    def grow(self, count: int) -> BoostedTrees:
        """The forests of so many trees each."""
        x, y, weights = (None if part is None else part.numpy() for part in self._labelled)
        assert x is not None
        self._model.set_params(max_iter=count).fit(x[:, self._columns], y, sample_weight=weights)
        return BoostedTrees.of(self._model, self._columns)


def _in_heaps(
    trees: Sequence[np.ndarray], depth: int
) -> tuple[
    Int[np.ndarray, "trees nodes"],
    Float[np.ndarray, "trees nodes"],
    Float[np.ndarray, "trees leaves"],
]:
    """Features, thresholds and leaves of scikit-learn's trees, in complete trees of this depth."""
    nodes = np.concatenate(trees)
    first = np.cumsum([0, *(len(tree) for tree in trees)])[:-1, None]
    at, features, thresholds = first, [], []
    for _ in range(depth):
        own = nodes[at]
        ends = own["is_leaf"] == 1
        features.append(np.where(ends, 0, own["feature_idx"]))
        thresholds.append(np.where(ends, np.inf, own["num_threshold"]))
        below = [np.where(ends, at, first + own[side]) for side in ("left", "right")]
        at = np.stack(below, axis=2).reshape(len(first), -1)
    # Rounded down, a float32 is above the threshold if and only if it is above the exact one.
    exact = np.concatenate(thresholds, axis=1)
    near = exact.astype(np.float32)
    down = np.where(near > exact, np.nextafter(near, np.float32(-np.inf)), near)
    values = nodes[at]["value"].astype(np.float32)
    return np.concatenate(features, axis=1).astype(np.int64), down, values


def _losses_by_count(trees: BoostedTrees, labelled: Labelled) -> Float[Tensor, "rows counts"]:
    """The loss of each row with no tree, with the first one, with the first two …"""
    parts = []
    for some in torch.arange(len(labelled.rows)).split(BLOCK):
        block = labelled.some(some)
        added = torch.nn.functional.pad(trees.of_trees(block.rows), (1, 0))
        parts.append(_losses(added.cumsum(2) + trees.base.unsqueeze(1), block))
    return torch.cat(parts)


def _losses(
    outputs: Float[Tensor, "rows outputs counts"], labelled: Labelled
) -> Float[Tensor, "rows counts"]:
    """The weighted squared error, or log loss of classes, of each number of trees."""
    _, targets, weights = labelled
    if targets.is_floating_point():
        losses = (outputs[:, 0] - targets.unsqueeze(1)).square()
    elif outputs.shape[1] == 1:
        sign = 1 - 2.0 * targets.unsqueeze(1)
        losses = torch.nn.functional.softplus(sign * outputs[:, 0])
    else:
        index = targets.long().view(-1, 1, 1).expand(-1, 1, outputs.shape[2])
        losses = outputs.logsumexp(1) - outputs.gather(1, index)[:, 0]
    return losses if weights is None else losses * weights.unsqueeze(1)
