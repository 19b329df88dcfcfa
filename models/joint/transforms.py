"""The distribution functions of one target at true values that no weight was fitted to."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from models.evaluation.calibration import LabelledMixture
from models.evaluation.path_calibration import PathCalibration
from models.features.rows import Rows
from models.joint.dependence import Transforms
from models.posteriors.variant import Variant
from models.prediction.number_mixture import NumberMixture
from models.tabular.fold_problem import FoldProblem
from models.tabular.model import TabularModel
from models.tabular.row_problem import SCORE_SAMPLES, RowProblem

Calibrating = dict[float, Transforms]
"""By variant; empty without rows for the calibration."""


def of_calibration(problem: RowProblem, model: TabularModel) -> Calibrating:
    """The transforms of the rows that calibrate each variant.

    With folds they are the learning rows, each predicted by the members that leave it out.
    """
    found = {}
    for prune, variant in model.variants_by_prune.items():
        if isinstance(problem, FoldProblem):
            labelled: Iterator[LabelledMixture] = problem.out_of_fold(variant.state)
        elif problem.calibration is not None:
            labelled = _labelled(model, prune, problem.calibration)
        else:
            continue
        found[prune] = _transforms(labelled, variant)
    return found


def of_rows(model: TabularModel, prune: float, rows: Rows) -> Transforms:
    """The transforms of other rows."""
    return _transforms(_labelled(model, prune, rows), model.variant(prune))


def _labelled(model: TabularModel, prune: float, rows: Rows) -> Iterator[LabelledMixture]:
    fitted, sampler, seed = model.fitted(prune), model.samplers[0], model.default_seed
    return model.engine.labelled(fitted, rows, sampler, seed, SCORE_SAMPLES)


def _transforms(labelled: Iterable[LabelledMixture], variant: Variant) -> Transforms:
    parts = [_of_mixture(one, variant) for one in labelled if not one.only_groups]
    columns = (torch.cat(each).double().cpu().numpy() for each in zip(*parts, strict=True))
    return Transforms(*columns)


def _of_mixture(one: LabelledMixture, variant: Variant) -> tuple[Tensor, Tensor, Tensor]:
    mixture, calibration = one.mixture, variant.calibration
    if calibration is not None:
        assert not isinstance(calibration, PathCalibration), "forecasts have one target"
        mixture = calibration.apply(mixture)
    assert isinstance(mixture, NumberMixture), "several targets are numbers"
    y = one.targets.double()
    weights = torch.ones_like(y) if one.weights is None else one.weights
    return mixture.pit(y, one.start), 0.5 * (mixture.cdf_before(y) + mixture.cdf(y)), weights
