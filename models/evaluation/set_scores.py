"""Coverage and size of sets of classes on labelled rows, by level, for both kinds of sets."""

from collections.abc import Iterator, Mapping, Sequence

from jaxtyping import Float, Int
from torch import Tensor

from models.config import Json
from models.evaluation.class_scores import MOST_CLASSES, TARGET
from models.evaluation.class_sets import RankedClasses, SetCalibration
from models.evaluation.standard_errors import of_mean, of_share
from models.evaluation.weighting import mean, split_weights

_KINDS = {"credible": "", "conformal": "conformal_"}  # their names' beginnings


def set_row_scores(
    probabilities: Float[Tensor, "rows classes"],
    targets: Int[Tensor, "rows"],
    sets: SetCalibration | None,
    levels: Sequence[float],
) -> dict[str, Float[Tensor, "rows"]]:
    """Per row: 1 if the set of a level contains the true class, else 0; its number of classes."""
    ranked = RankedClasses.of(probabilities)
    ranks, scores = ranked.ranks(targets), {}
    for level in levels:
        sizes = {"credible": ranked.credible_sizes(level)}
        if sets is not None:
            sizes["conformal"] = sets.sizes(ranked, level)
        for kind, size in sizes.items():
            scores[f"{_KINDS[kind]}set_coverage_{level:g}"] = (ranks <= size).double()
            scores[f"{_KINDS[kind]}set_size_{level:g}"] = size.double()
    return scores


def set_metrics(scores: Mapping[str, Tensor], levels: Sequence[float]) -> tuple[Json, Json]:
    """Means of the per-row scores by level, and their standard errors; empty without them."""
    found, weights = split_weights({name: values.cpu() for name, values in scores.items()})
    metrics: Json = {}
    errors: Json = {}
    for name, columns in _by_level(found, levels):
        error = of_share if name.endswith("coverage") else of_mean
        metrics[name] = {level: mean(values, weights) for level, values in columns.items()}
        errors[name] = {level: error(values, weights) for level, values in columns.items()}
    return metrics, errors


def set_coverage_by_class(
    scores: Mapping[str, Tensor], levels: Sequence[float], num_classes: int
) -> list[Json]:
    """The coverage among the rows of each class; empty for many classes, None without a row."""
    if num_classes > MOST_CLASSES or TARGET not in scores:
        return []
    found, weights = split_weights({name: values.cpu() for name, values in scores.items()})
    each = []
    for k in range(num_classes):
        mine = found[TARGET] == k
        own = None if weights is None else weights[mine]
        any_row = bool(mine.any())
        each.append(
            {
                name: {
                    level: mean(values[mine], own) if any_row else None
                    for level, values in columns.items()
                }
                for name, columns in _by_level(found, levels)
                if name.endswith("coverage")
            }
        )
    return each


def _by_level(
    scores: Mapping[str, Tensor], levels: Sequence[float]
) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """The per-row scores of each name, by level."""
    for prefix in _KINDS.values():
        for name in (f"{prefix}set_coverage", f"{prefix}set_size"):
            columns = {f"{level:g}": scores.get(f"{name}_{level:g}") for level in levels}
            known = {level: values for level, values in columns.items() if values is not None}
            if known:
                yield name, known
