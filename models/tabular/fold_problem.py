"""The training problem of a table whose members leave out one fold of the rows each.

Out-of-fold predictions exist for every learning row: each row is predicted by the members that did
not learn from it. They choose the epoch and the recipe, and calibrate (Barber et al. 2021, arXiv
1905.02928, for the intervals). The reported scores are of rows that nothing was chosen on.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.evaluation.calibration import Calibration, LabelledMixture, fit_calibration
from models.evaluation.cells import MAX_SCORES
from models.evaluation.conformal_rank import MAX_RESIDUALS
from models.features.boosted import (
    FARTHEST,
    LEAST_LEAVES,
    LEAST_ROWS,
    MOST_CLASSES,
    BoostedTrees,
    Labelled,
)
from models.features.rows import evenly_spread
from models.features.splits import Folds
from models.features.targets import NumberTarget
from models.fitting.row_task import RowTask
from models.inference.gaussian_process import MOST_INPUTS, GaussianProcess, Offsets
from models.inference.method import State
from models.likelihoods import ShapedLikelihood
from models.likelihoods.number_mixture import NumberMixture
from models.networks import Stack
from models.prediction.engine import Engine, Ready
from models.tabular.model import TabularModel, make_ready
from models.tabular.row_problem import SCORE_SAMPLES, RowProblem

MAX_STEPS = 12_000  # of the fit to all rows: on a million of them twelve epochs
_LEAST_EPOCHS = 3
PROCESS_ROWS = 50_000  # whose covariances with the centres of a process are in memory: 100 MB
TREE_FOLDS = 12  # at least, of boosted trees, if the table is small
_CELLS_OF_MORE_FITS = 50_000  # rows × columns, whose trees take some seconds
_CHOOSING_SAMPLES = 5  # weight draws per member, each epoch
_CHOOSING_ROWS = 5_000  # that choose the epoch; of more rows evenly spread ones
_SCALING_ROWS = 2_000  # that the calibration's scale is fitted to: their mixtures are in memory


@dataclass(frozen=True)
class FoldProblem(RowProblem):
    """Rows in folds. `stopping` and `calibration` are None: the folds take their place.

    Args:
        leaves: least numbers of rows in a leaf of boosted trees, those that are tried or the best.
    """

    folds: Folds = field(kw_only=True)
    leaves: Sequence[int] = field(kw_only=True, default=LEAST_LEAVES)

    @property
    def task(self) -> RowTask:
        """The rows, with a weight for each member."""
        weights = self.folds.weights(self.model.network.layout.members)
        if self.rows.weights is not None:
            weights = weights * self.rows.weights.unsqueeze(1)
        return replace(super().task, rows=replace(self.rows, weights=weights))

    @property
    def chooses(self) -> bool:
        return True

    def score(self, state: State) -> float:
        """Weighted mean of the out-of-fold log density; each rank predicts a part of the rows."""
        total = self.rows.inputs.new_zeros((), dtype=torch.float64)
        weight = 0.0
        for fold in range(self.folds.count):
            rows = self._some(fold, _CHOOSING_ROWS)
            weight += self.rows[rows].weight
            mine = rows[self.ranks.part(len(rows)).rows]
            if len(mine):
                density = self._log_density(state, fold, mine)
                total += self.rows[mine].weigh(density).double().sum()
        return float(self.ranks.sum(total)) / weight

    def thinned(self, most: int) -> "FoldProblem":
        """The problem with at most `most` of the learning rows, evenly spread, in memory."""
        if len(self.rows) <= most:
            return self
        some = evenly_spread(len(self.rows), most)
        folds = replace(self.folds, of_row=self.folds.of_row[some])
        return replace(self, rows=self.rows[some], folds=folds)

    @property
    def takes_process(self) -> bool:
        """Whether a Gaussian process may be below the networks.

        It needs a likelihood with a shape, few enough inputs, and rows in memory of this process.
        """
        return (
            isinstance(self.model.likelihood, ShapedLikelihood)
            and len(self.model.encoder.plain_columns) <= MOST_INPUTS
            and len(self.rows) <= PROCESS_ROWS
            and self.ranks.size == 1
        )

    def above_process(self) -> "FoldProblem":
        """What a Gaussian process of these rows leaves of the target, if `takes_process`."""
        model, rows = self.model, self.rows
        assert isinstance(model.target, NumberTarget)
        process, offsets = GaussianProcess.fit(
            model.encoder.plain(rows.inputs).cpu(),
            model.target.to_z(rows.targets.double()).cpu(),
            None if rows.weights is None else rows.weights.cpu(),
            self.folds.of_row.cpu(),
        )
        return self._above(process, offsets)

    def widened(self, process: GaussianProcess, shorter: float = 1.0) -> "FoldProblem":
        """The problem above a process that only widens (`GaussianProcess.widening`)."""
        model, rows = self.model, self.rows
        process, offsets = process.to("cpu").widening(
            model.encoder.plain(rows.inputs).cpu(),
            None if rows.weights is None else rows.weights.cpu(),
            self.folds.of_row.cpu(),
            shorter,
        )
        return self._above(process, offsets)

    def counted_once(self, model: TabularModel) -> "tuple[TabularModel, FoldProblem]":
        """Model and problem without what the process and the networks above it both state.

        A process that only widens states nothing among the rows, and stays as it is.
        """
        process, offsets = model.process, self.rows.offsets
        if process is None or process.only_widens:
            return model, self
        assert offsets is not None
        x = self.rows.inputs[evenly_spread(len(self.rows), _SCALING_ROWS)]
        engine = replace(model.engine, process=None)
        variances, sampling = [], engine.best_sampling(model.default_seed, SCORE_SAMPLES)
        for _, mixture in engine.mixtures(model.fitted(0.0), x, sampling):
            assert isinstance(mixture, NumberMixture)
            variances.append(mixture.location_variances().cpu())
        plain = model.encoder.plain(x).cpu()
        found = process.to("cpu").beside(offsets.cpu(), plain, torch.cat(variances))
        problem = self._above(*found)
        return replace(model, process=problem.model.process), problem

    def _above(self, process: GaussianProcess, offsets: Offsets) -> "FoldProblem":
        device = self.rows.inputs.device
        model = replace(self.model, process=process.to(device))
        return replace(self, model=model, rows=replace(self.rows, offsets=offsets.to(device)))

    @property
    def takes_trees(self) -> bool:
        """Whether boosted trees may be inputs: of rows in memory of this process, few classes."""
        is_small = self.model.classes is None or len(self.model.classes) <= MOST_CLASSES
        return self.ranks.size == 1 and is_small and len(self.rows) >= LEAST_ROWS

    @property
    def has_trees(self) -> bool:
        return self.model.encoder.boosted is not None

    def with_trees(self, *, finer: bool = True) -> "FoldProblem":
        """The problem whose rows also have the outputs of boosted trees, out of fold.

        Itself where no tree is better than none.

        Args:
            finer: whether to leave out parts of the members' folds where `takes_finer_trees`: trees
                without a smaller fold differ less from those of all rows, which new rows have.
        """
        model, rows = self.model, self.rows
        encoder, classes = model.encoder, None if model.classes is None else len(model.classes)
        targets = rows.targets
        if isinstance(model.target, NumberTarget):
            targets = model.target.to_z(targets.double()).clamp(-FARTHEST, FARTHEST).float()
        weights = None if rows.weights is None else rows.weights.cpu()
        labelled = Labelled(rows.inputs.cpu(), targets.cpu(), weights)
        parts = -(-TREE_FOLDS // self.folds.count) if finer and self.takes_finer_trees else 1
        folds = self.folds.cut(parts).of_row.cpu()
        found = BoostedTrees.fit(labelled, folds, encoder.tree_columns, classes, self.leaves)
        if found is None:
            return self
        encoder = replace(encoder, boosted=found.trees)
        outputs = found.outputs.to(rows.inputs)
        return replace(
            self,
            model=replace(model, encoder=encoder),
            rows=replace(rows, inputs=encoder.with_trees(rows.inputs, outputs)),
            scores=replace(self.scores, inputs=encoder.with_trees(self.scores.inputs)),
            leaves=(found.leaf,),
        )

    @property
    def takes_finer_trees(self) -> bool:
        """Whether boosted trees may leave out parts of a fold: random rows of a small table."""
        cells = len(self.rows) * len(self.model.encoder.tree_columns)
        return cells <= _CELLS_OF_MORE_FITS and self.model.config.training.split == "random"

    def log_scores(self, state: State) -> Float[Tensor, "rows"]:
        """The out-of-fold log likelihood of each learning row, in the target's unit."""
        scores = self.rows.inputs.new_zeros(len(self.rows), dtype=torch.float64)
        for fold in range(self.folds.count):
            rows = self.folds.rows(fold)
            for one in self._labelled(state, fold, rows):
                part = rows[one.start : one.start + len(one.targets)]
                scores[part] = one.mixture.log_prob(one.targets).double()
        return scores

    def measured(self, model: TabularModel) -> TabularModel:
        """The model, calibrated by out-of-fold predictions and scored on held-out rows."""
        variants = {
            prune: replace(variant, calibration=self.calibrated(variant.state))
            for prune, variant in model.variants_by_prune.items()
        }
        return super().measured(model.with_variants(variants))

    def out_of_fold(self, state: State) -> Iterator[LabelledMixture]:
        """The learning rows, each predicted out of fold; of many `MAX_RESIDUALS`, evenly spread."""
        return self._out_of_fold(state, MAX_RESIDUALS)

    def epochs_on_all_rows(self, best: int) -> int:
        """Epochs of the fit to all rows, where the race took `best` on some of them."""
        batches = self.task.num_batches(self.model.config.training)
        return max(_LEAST_EPOCHS, min(best, MAX_STEPS // batches))

    def calibrated(self, state: State) -> Calibration:
        """The calibration fitted to the learning rows, each predicted out of fold."""
        some = list(self._out_of_fold(state, _SCALING_ROWS))
        largest = max(len(self.folds.rows(fold)) for fold in range(self.folds.count))
        is_all = largest <= _SCALING_ROWS // self.folds.count
        shaped = isinstance(self.model.likelihood, ShapedLikelihood)
        groups = self.model.num_groups
        ranked = some if is_all else self.out_of_fold(state)
        return fit_calibration(some, ranked, shaped=shaped, groups=groups)

    def _out_of_fold(self, state: State, most: int) -> Iterator[LabelledMixture]:
        """At most so many rows, and of `MAX_RESIDUALS` more of small groups.

        Of more rows a calibration keeps no more.
        """
        start = 0
        for fold in range(self.folds.count):
            common = self._some(fold, most)
            more = self._more_of_groups(fold, common) if most == MAX_RESIDUALS else common[:0]
            for rows, only_groups in ((common, False), (more, True)):
                for one in self._labelled(state, fold, rows):
                    yield replace(one, start=start + one.start, only_groups=only_groups)
                start += len(rows)

    def _more_of_groups(self, fold: int, common: Int[Tensor, "some"]) -> Int[Tensor, "more"]:
        """Rows of a fold beside `common`: each group has up to `MAX_SCORES` in all folds."""
        rows, groups = self.folds.rows(fold), self.model.engine.groups(self.rows.inputs)
        if groups is None or len(common) == len(rows):
            return common[:0]
        wanted = [
            own[evenly_spread(len(own), MAX_SCORES // self.folds.count)]
            for own in (rows[groups[rows] == group] for group in range(self.model.num_groups))
        ]
        found = torch.cat(wanted)
        return found[~torch.isin(found, common)]

    def _some(self, fold: int, most: int) -> Int[Tensor, "some"]:
        """Rows of a fold, evenly spread; those of all folds are at most `most`."""
        rows = self.folds.rows(fold)
        return rows[evenly_spread(len(rows), most // self.folds.count)]

    def _labelled(
        self, state: State, fold: int, index: Int[Tensor, "some"]
    ) -> Iterator[LabelledMixture]:
        """The mixtures of rows of a fold, by the members that leave it out."""
        if not len(index):
            return
        engine, fitted = self._left_out(state, fold)
        sampling = engine.best_sampling(self.model.default_seed, SCORE_SAMPLES)
        yield from engine.labelled(fitted, self.rows[index], sampling)

    @torch.inference_mode()
    def _log_density(
        self, state: State, fold: int, index: Int[Tensor, "some"]
    ) -> Float[Tensor, "some"]:
        """log p of encoded targets, by plain Monte Carlo."""
        engine, fitted = self._left_out(state, fold)
        rows = self.rows[index]
        samples = _CHOOSING_SAMPLES * engine.network.layout.members
        seed = self.model.default_seed
        outputs, point = engine.outputs(fitted, rows.inputs, seed, samples, rows.offsets)
        log_prob = self.model.likelihood.log_prob(outputs, rows.targets, point)
        return log_prob.logsumexp(0) - math.log(len(outputs))

    def _left_out(self, state: State, fold: int) -> tuple[Engine, Ready]:
        """The members that leave out a fold, ready for prediction."""
        members, layout = self.folds.members(fold, self._stack.members), self._stack.layout
        engine, whole = self._engines[fold], state.detach()
        return engine, make_ready(engine.network, whole.of_members(layout, members))

    @cached_property
    def _stack(self) -> Stack:
        network = self.model.network
        if not isinstance(network, Stack):
            raise TypeError(f"folds need members; a {type(network).__name__} has none")
        return network

    @cached_property
    def _engines(self) -> list[Engine]:
        """An engine of the members that leave out each fold."""
        return [
            replace(
                self.model.engine,
                network=self._stack.select(self.folds.members(fold, self._stack.members)),
            )
            for fold in range(self.folds.count)
        ]
