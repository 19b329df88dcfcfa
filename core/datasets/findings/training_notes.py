"""What was decided about a training's target and features, in sentences."""

from collections.abc import Iterator, Sequence

from core.datasets.dataset import Dataset
from core.datasets.findings.finding import Finding
from models.config import ForecastConfig, ModelConfig, SplitBy
from models.features.columns import ColumnProfile
from models.features.row_weights import left_out_rows
from models.messages import counted, first_of

MAX_NOTES = 40
MAX_NAMES = 20  # in a note
_SAID_ONCE = ("target_missing", "task")  # in words of the model's own


def notes_on_columns(
    dataset: Dataset, config: ModelConfig, found: Sequence[Finding], *, chosen: bool
) -> tuple[str, ...]:
    """Notes on the target, on features that are a guess, and on columns that are no features.

    Args:
        config: resolved: its features are those that the model learns from.
        found: the findings on the target (`check_target`).
        chosen: whether the request names the features, so that no column was left out by default.
    """
    features = {feature.name for feature in config.features or ()}
    notes = [
        *_on_target(dataset, config, found),
        *_on_features(dataset, config, features, found),
        *(() if chosen else _on_others(dataset, config, features)),
    ]
    more = len(notes) - MAX_NOTES
    if more <= 0:
        return tuple(notes)
    return (
        *notes[:MAX_NOTES],
        f"{counted(more, 'more note')}: see the findings of data set {dataset.id}",
    )


def _on_target(dataset: Dataset, config: ModelConfig, found: Sequence[Finding]) -> Iterator[str]:
    for reading in dataset.readings:
        if reading.name == config.target and reading.format and reading.type == "number":
            yield (
                f"the target {config.target!r} was read from texts such as {reading.format!r}: "
                "predictions are plain numbers"
            )
    for one in dataset.columns:
        if one.name == config.target and one.missing:
            yield left_out_rows(one.missing, "without a target")
    for finding in found:
        if finding.column == config.target and finding.code not in _SAID_ONCE:
            yield finding.message


def _on_features(
    dataset: Dataset, config: ModelConfig, features: set[str], found: Sequence[Finding]
) -> Iterator[str]:
    for finding in found:
        if finding.column in features:
            yield f"{finding.message}. It was kept as a feature"
    for finding in dataset.findings:
        is_read = finding.column in features | {config.target} or finding.code == "duplicate_rows"
        if finding.severity != "info" and is_read:
            yield finding.message


def _on_others(dataset: Dataset, config: ModelConfig, features: set[str]) -> Iterator[str]:
    if config.forecast is not None:
        yield from _on_unread(dataset, config.forecast, features | {config.target})
    elif features:
        yield from _on_unused(dataset, config, features)


def _on_unread(dataset: Dataset, forecast: ForecastConfig, read: set[str]) -> Iterator[str]:
    """Nobody can know of a column of a series whether its values are known ahead."""
    read = read | {*forecast.past, str(forecast.time_column), str(forecast.key)}
    unread = [one.name for one in dataset.columns if one.use and one.name not in read]
    if unread:
        yield (
            f"not read: {first_of(unread, MAX_NAMES)}. Name what is known ahead in "
            "`features`, and what is only known of the past in `forecast.past`"
        )


def _on_unused(dataset: Dataset, config: ModelConfig, features: set[str]) -> Iterator[str]:
    messages = {
        finding.column: finding.message
        for finding in dataset.findings
        if finding.code in ("identifier", "free_text")
    }
    left_out = {fix.name for fix in dataset.given.fixes if fix.use is False}
    for one in dataset.columns:
        if one.name in features or one.name == config.target:
            continue
        if one.name in left_out:
            yield f"column {one.name!r} was left out, as you chose"
            continue
        yield messages.get(one.name) or f"column {one.name!r} is not a feature: {_why(one, config)}"


def _why(one: ColumnProfile, config: ModelConfig) -> str:
    split = config.training.split
    if one.name == config.weight:
        return "it holds the weights of the rows"
    if isinstance(split, SplitBy) and one.name == split.by:
        return "it holds the groups that the split keeps together"
    if one.name == config.training.groups:
        return "it holds the groups that have conformal intervals of their own"
    return "it is not used by default"
