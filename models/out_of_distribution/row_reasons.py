"""Why rows are unlike those of training: the columns, their values and what training saw."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import torch
from jaxtyping import Bool, Float

from models.features.columns import Columns, convert
from models.features.feature_encoder import FeatureEncoder
from models.features.seen_columns import SeenColumn, is_missing
from models.out_of_distribution.surprise import Surprise
from models.prediction.outputs.reasons import (
    COMBINATION,
    Code,
    Level,
    Levels,
    Range,
    Reason,
    Seen,
    Value,
)
from models.prediction.threads import threads_for

MAX_REASONS = 5  # of a row, the strongest ones
_MAX_UNUSUAL = 3  # columns of an unusual combination
_LEAST_SHARE = 0.25  # of the largest contribution, for a column to be named

_START = datetime(1970, 1, 1, tzinfo=UTC)


def find_reasons(
    encoder: FeatureEncoder,
    columns: Columns,
    flagged: Bool[np.ndarray, "rows"],
    surprise: Surprise | None = None,
) -> list[Sequence[Reason]]:
    """The reasons of each flagged row, the strongest first; other rows have none.

    Args:
        encoder: with what training saw.
        columns: the values of all rows.
        surprise: which columns do not go together, of rows that no single one explains.
    """
    reasons: list[Sequence[Reason]] = [()] * len(flagged)
    rows = np.flatnonzero(flagged).tolist()
    if not rows:  # as a rule
        return reasons
    names = [feature.name for feature in encoder.features]
    some = {name: columns[name][rows] for name in names}
    for row, found in zip(rows, _of_rows(encoder, some), strict=True):
        reasons[row] = found
    left = [row for row in rows if reasons[row] == (COMBINATION,)]
    if left and surprise is not None:
        some = {name: columns[name][left] for name in names}
        with torch.inference_mode(), threads_for(len(left)):
            added = surprise.contributions(encoder.encode(some))
        for row, found in zip(left, _unusual(encoder, some, added), strict=True):
            reasons[row] = found
    return reasons


def _unusual(
    encoder: FeatureEncoder, columns: Columns, added: Float[np.ndarray, "rows features"]
) -> Iterator[Sequence[Reason]]:
    """For each row the columns that add most to its surprise; if none adds, the row as a whole."""
    assert encoder.seen is not None
    described = list(zip(encoder.features, encoder.stored, encoder.seen.columns, strict=True))
    for row, each in enumerate(added):
        least = max(_LEAST_SHARE * each.max(), 0.0)
        strongest = [i for i in np.argsort(-each)[:_MAX_UNUSUAL].tolist() if each[i] > least]
        reasons = []
        for feature, stored, seen in (described[i] for i in strongest):
            values = convert(columns[feature.name][row : row + 1], stored, feature.type)
            value = None if is_missing(seen.kind, values)[0] else _values(seen, values)[0]
            reasons.append(Reason(feature.name, "unusual_combination", value, _what(seen)))
        yield tuple(reasons) or (COMBINATION,)


def _of_rows(encoder: FeatureEncoder, columns: Columns) -> list[Sequence[Reason]]:
    """The reasons of each of these rows, all of which are flagged."""
    scores = encoder.column_scores(columns)
    found: list[list[tuple[float, Reason]]] = [[] for _ in scores]
    assert encoder.seen is not None
    described = zip(encoder.features, encoder.stored, encoder.seen.columns, strict=True)
    for i, (feature, stored, seen) in enumerate(described):
        rows = np.flatnonzero(scores[:, i])
        if not len(rows):
            continue
        values = convert(columns[feature.name][rows], stored, feature.type)
        each = reasons_of_column(feature.name, seen, values)
        for row, reason in zip(rows.tolist(), each, strict=True):
            found[row].append((float(scores[row, i]), reason))
    return [strongest(one) for one in found]


def strongest(reasons: Sequence[tuple[float, Reason]]) -> tuple[Reason, ...]:
    """Those with the highest scores; without any, that of the row as a whole."""
    ordered = sorted(reasons, key=lambda one: -one[0])[:MAX_REASONS]
    return tuple(reason for _, reason in ordered) or (COMBINATION,)


def reasons_of_column(name: str, seen: SeenColumn, values: np.ndarray) -> list[Reason]:
    """A reason for each of these values, all of which are unlike training's."""
    levels = seen.kind in {"category", "boolean"}
    code: Code = "unseen_level" if levels else "out_of_range"
    what, absent = _what(seen), is_missing(seen.kind, values).tolist()
    reasons = [
        Reason(name, "missing_unseen", None, what) if lacks else Reason(name, code, value, what)
        for value, lacks in zip(_values(seen, values), absent, strict=True)
    ]
    for gap in seen.gaps:
        ends = Range(_number(gap.lowest), _number(gap.highest))
        for row in np.flatnonzero(gap.depth(values)).tolist():
            reasons[row] = replace(reasons[row], code="gap", seen=ends)
    return reasons


def _what(seen: SeenColumn) -> Seen | None:
    """What training saw in a column; None of texts, and where all values were missing."""
    if seen.kind in {"category", "boolean"}:
        levels: tuple[Level, ...] = seen.levels
        if seen.kind == "boolean":
            levels = tuple(level == "true" for level in levels)
        return Levels(levels, seen.num_levels)
    if seen.lowest is None or seen.highest is None:
        return None
    if seen.kind == "datetime":
        return Range(_date(seen.lowest), _date(seen.highest))
    return Range(_number(seen.lowest), _number(seen.highest))


def _values(seen: SeenColumn, values: np.ndarray) -> list[Value]:
    """The values as the caller would write them; of tensors the farthest element."""
    match seen.kind:
        case "number":
            return [_number(value) for value in values.tolist()]
        case "boolean":
            return [bool(value) for value in values.tolist()]
        case "datetime":
            micros = values.astype("datetime64[us]").astype(np.int64)
            return [_date(value) for value in micros.tolist()]
        case "tensor":
            return [_number(value) for value in _farthest(seen, values).tolist()]
    return [None if value is None else str(value) for value in values.tolist()]


def _farthest(seen: SeenColumn, values: np.ndarray) -> Float[np.ndarray, "rows"]:
    flat = values.reshape(len(values), -1).astype(np.float64)
    least, greatest = flat.min(1), flat.max(1)
    below = (seen.lowest or 0) - least > greatest - (seen.highest or 0)
    return np.where(below, least, greatest)


def _number(value: float) -> float | int | None:
    """A whole number without a decimal point; None for NaN and infinity, which JSON lacks."""
    if not np.isfinite(value):
        return None
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)


def _date(micros: float) -> str | None:
    """A day, or a time in RFC 3339; None outside the years 1 to 9999."""
    try:
        moment = _START + timedelta(microseconds=int(micros))
    except OverflowError:
        return None
    if moment.time() == datetime.min.time():
        return moment.date().isoformat()
    return moment.replace(tzinfo=None).isoformat() + "Z"
