"""The metrics of rows of a table."""

from collections.abc import Sequence

from models.config import Json
from models.evaluation.abstention import selective_metrics
from models.evaluation.class_scores import class_metrics, set_coverage_by_class, set_metrics
from models.evaluation.group_coverage import coverage_by_group, coverage_by_size
from models.evaluation.metrics import COVERAGE_LEVELS, PerRowScores
from models.evaluation.metrics import summarise as summarise_scores
from models.features.groups import Groups
from models.prediction.prediction import ClassName


def summarise(
    scores: PerRowScores, classes: Sequence[ClassName] | None, groups: Groups | None
) -> Json:
    """The metrics of scored rows, with those by class if they have what these need."""
    metrics = summarise_scores(scores) | selective_metrics(scores) | coverage_by_size(scores)
    if groups is not None:
        metrics |= coverage_by_group(scores, groups.column, groups.names)
    by_class, errors = class_metrics(scores, classes or ())
    sets, of_sets = set_metrics(scores, COVERAGE_LEVELS)
    covered = set_coverage_by_class(scores, COVERAGE_LEVELS, len(classes or ()))
    for scored, coverage in zip(by_class.get("by_class", ()), covered, strict=False):
        scored.update(coverage)
    errors = metrics["standard_errors"] | errors | of_sets
    return metrics | by_class | sets | {"standard_errors": errors}
