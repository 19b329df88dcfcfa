"""Trains a model on a table that is larger than memory."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from torch import Tensor

from models.card import ColumnTotals, no_rows_yet
from models.config import ModelConfig
from models.config.training import required
from models.exceptions import InvalidData
from models.features.categories import MAX_KNOWN, CategoryEncoder
from models.features.columns import Columns
from models.features.encoders import Encoder
from models.features.feature_encoder import FeatureEncoder
from models.features.row_weights import notes_on_left_out
from models.features.rows import Rows
from models.features.seen_columns import MAX_LEVELS, SeenColumn, SeenColumns
from models.features.splits import MIN_CALIBRATION, Division, Folds
from models.features.targets import ClassTarget
from models.features.weighted import by_frequency
from models.fitting.distributed import ALONE
from models.model import TrainedModel
from models.tabular.fold_problem import MAX_STEPS, FoldProblem
from models.tabular.preparation import Assigned, prepare
from models.tabular.row_problem import RowProblem
from models.tabular.streaming.blocks import ColumnBlocks, Table, survey
from models.tabular.streaming.encoding import (
    RowEncoder,
    encoded_parts,
    write_shuffled,
)
from models.tabular.streaming.gathering import MAX_COUNTED, Limits, Sets, gather
from models.tabular.streaming.on_disk import FoldsOnDisk, RowsOnDisk
from models.training.train import TrainingRun, begin_stages, fit_problem

_STEPS = 15_000  # of a fit whose recipe is given
_RACE_EPOCHS = 12  # of the fit to all rows of what a race has chosen


@dataclass(frozen=True)
class Streamed:
    """A problem whose rows are on disk, and the rows in memory that it was made from.

    Args:
        columns: a sample of the rows to learn from, and all held-out rows.
        division: the sets of these rows.
    """

    problem: RowProblem
    columns: Columns
    division: Division


def train_streamed(  # noqa: PLR0917 - those of `train_problem`, and where rows may lie
    blocks: ColumnBlocks,
    types: Mapping[str, str],
    config: ModelConfig,
    run: TrainingRun,
    folder: Path,
    memory_bytes: int,
    device: str = "cpu",
) -> tuple[TrainedModel, Streamed]:
    """`models.training.train.train` for rows on disk, in one process.

    Args:
        folder: an empty folder for the encoded rows. It may be deleted afterwards.
        memory_bytes: about how much the rows and what is fitted to them may take.

    Raises:
        InvalidData, Diverged, Stopped: as `train`.
    """
    table = Table(blocks, config, run.should_stop)
    streamed = prepare_streamed(table, types, folder, memory_bytes)
    stages = begin_stages(config, run, ALONE)
    return fit_problem(streamed.problem.to(device), stages)[0], streamed


def prepare_streamed(
    table: Table, types: Mapping[str, str], folder: Path, memory_bytes: int
) -> Streamed:
    """Read a table three times: count, gather, encode.

    Encoders and targets are fitted to a sample, which has all rows if they fit. Classes, levels,
    extremes and missing values are those of all rows.

    Args:
        folder: an empty folder for the encoded rows, which must outlive the problem.
        memory_bytes: about how much the rows and what is fitted to them may take.

    Raises:
        InvalidData: as `models.tabular.preparation.prepare`.
        Stopped: between two blocks.
    """
    surveyed = survey(table)
    limits = Limits.of(memory_bytes, len(table.config.columns))
    sets = Sets.of(table.config.training, surveyed, limits.held_out)
    gathered = gather(table, types, sets, limits)
    division = gathered.division
    if not gathered.learned or not len(division.scores):
        raise InvalidData(
            "the split leaves no rows to learn from or none to score: give another "
            "validation_fraction or split",
            "/training/split",
        )
    if len(division.calibration) < MIN_CALIBRATION:
        division = replace(division, calibration=division.calibration[:0])
        gathered = replace(gathered, division=division)
    assigned = Assigned(gathered.division, gathered.folds)
    small = prepare(gathered.columns, types, table.config, assigned=assigned)
    model = replace(small.model, encoder=_with_levels(small.model.encoder, gathered.totals))
    encoder = RowEncoder.of(model, gathered)
    parts = encoded_parts(table, sets, encoder)
    stored, of_row = write_shuffled(
        parts, gathered.learned, folder, memory_bytes, table.should_stop
    )
    sampled = len(gathered.division.training)
    notes = (
        *notes_on_left_out(surveyed.without_target, surveyed.of_weight_0),
        *model.notes,
        (
            f"streamed from disk: the fits read {gathered.learned} rows in a random order, in "
            "steps rather than epochs, with at least one pass over all; encoders, scales and "
            f"effects of levels were fitted to {sampled} of them; each held-out set has at most "
            f"{limits.held_out} rows"
        ),
    )
    if isinstance(model.target, ClassTarget):  # also those that only held-out rows have
        gathered.totals[-1].levels.update(no_rows_yet(model.target.classes))
    summaries = tuple(total.summary for total in gathered.totals)
    profile = replace(small.profile, learned=gathered.learned, columns=summaries)
    small = replace(small, model=replace(model, notes=notes), profile=profile)
    return Streamed(_on_disk(small, stored, of_row), gathered.columns, gathered.division)


def _with_levels(encoder: FeatureEncoder, totals: tuple[ColumnTotals, ...]) -> FeatureEncoder:
    """The encoder, whose categories know all levels that the rows to learn from have."""
    if encoder.seen is None:
        return encoder
    pairs = [
        _with_counts(one, seen, total)
        for one, seen, total in zip(encoder.encoders, encoder.seen.columns, totals, strict=False)
    ]
    seen = SeenColumns(tuple(seen for _, seen in pairs))
    return replace(encoder, encoders=tuple(one for one, _ in pairs), seen=seen)


def _with_counts(
    encoder: Encoder, seen: SeenColumn, total: ColumnTotals
) -> tuple[Encoder, SeenColumn]:
    if not isinstance(encoder, CategoryEncoder) or not total.levels:
        return encoder, seen
    frequent = by_frequency(total.levels)
    if len(frequent) <= seen.num_levels:
        return encoder, seen
    counted = replace(seen, levels=tuple(frequent[:MAX_LEVELS]), num_levels=len(frequent))
    if not encoder.marked:
        return encoder, counted
    if len(frequent) >= min(MAX_KNOWN, MAX_COUNTED):  # too many to tell which are new
        return replace(encoder, marked=False, others=()), replace(counted, new_level=0.0)
    others = {*frequent, *encoder.others} - set(encoder.known_levels)
    return replace(encoder, others=tuple(sorted(others))), counted


def _on_disk(small: RowProblem, rows: Rows, of_row: Tensor) -> RowProblem:
    """The problem with the stored rows, and the fold of each, instead of the sampled ones."""
    own = {f.name: getattr(small, f.name) for f in fields(small)}
    own |= {"rows": rows, "mean_weight": rows.weight / len(rows)}
    if isinstance(small, FoldProblem):
        own["folds"] = Folds(of_row, small.folds.count)
        return FoldsOnDisk(**own, steps=MAX_STEPS, epochs=_RACE_EPOCHS)
    epochs = required(small.model.config.training.epochs, "epochs")
    return RowsOnDisk(**own, steps=_STEPS, epochs=epochs)
