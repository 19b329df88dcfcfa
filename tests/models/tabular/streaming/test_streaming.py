"""What is read in blocks is what would be read at once; what is sampled is said to be so."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from models.config import (
    BBBConfig,
    FeatureConfig,
    MLPConfig,
    ModelConfig,
    SplitBy,
    SplitTime,
    TrainingConfig,
)
from models.exceptions import InvalidData, Stopped
from models.features.columns import Columns
from models.features.folds import Folds
from models.features.usable import UsableRows
from models.tabular.candidates import first_candidate
from models.tabular.fold_problem import FoldProblem
from models.tabular.preparation import Assigned, prepare
from models.tabular.problem import RowProblem
from models.tabular.race import joined
from models.tabular.streaming import blocks as blocks_module
from models.tabular.streaming.gathering import Limits, gather
from models.tabular.streaming.hashing import group_uniforms, row_hashes, row_uniforms
from models.tabular.streaming.preparation import Streamed, prepare_streamed
from models.tabular.streaming.problem import Stream, StreamedFolds, StreamedProblem
from models.tabular.streaming.sets import SCORES, TRAINING, Sets
from models.tabular.streaming.shuffled import EncodedPart, write_shuffled
from models.tabular.streaming.summaries import ColumnTotals
from models.tabular.streaming.survey import survey
from models.tabular.streaming.training import train_streamed
from models.training.progress import ProgressReporter
from models.training.row_profile import summarise_columns
from models.training.stages import Fitting, StageRunner
from models.training.train import TrainingRun, ignore, train
from tests.models.tabular.streaming.tables import TYPES, Memory, config_of, make, table_of

MEMORY = 2**26
ONCE: dict[str, Any] = {
    "network": MLPConfig(hidden=(8,)),
    "method": BBBConfig(),
    "training": TrainingConfig(epochs=3, stopping_fraction=0.1, refit=False, seed=3),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "_MAX_ROWS", 97)


def in_memory(streamed: Streamed, columns: Columns, config: ModelConfig) -> RowProblem:
    """`prepare` for the same table, sets and folds."""
    usable = UsableRows.of(columns, config.target, config.weight).index
    own = {name: values[usable] for name, values in columns.items()}
    table = table_of(columns, **ONCE)
    table = replace(table, config=config)
    sets = Sets.of(config.training, survey(table), 10**6)
    (block,) = _whole(table, len(columns["y"]))
    assigned = Assigned(streamed.division, sets.folds(block))
    return prepare(own, TYPES, config, assigned=assigned)


def _whole(table: Any, rows: int) -> list[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks_module, "_MAX_ROWS", rows)
        return list(table.usable(list(TYPES)))


def order_of(streamed: Streamed, config: ModelConfig) -> torch.Tensor:
    """The places of the rows on disk among the training rows of the table."""
    hashes = row_hashes(streamed.division.training, config.training.seed, "order")
    return torch.from_numpy(np.argsort(hashes))


def test_uniforms_are_uniform_and_do_not_depend_on_the_block() -> None:
    rows = np.arange(100_000)
    uniforms = row_uniforms(rows, 7, "split")
    counts = np.histogram(uniforms, 20, (0, 1))[0]
    chi_squared = (np.square(counts - 5_000) / 5_000).sum()
    assert chi_squared < 43.8  # of 19 degrees of freedom: exceeded with probability 0.001
    np.testing.assert_array_equal(uniforms[500:600], row_uniforms(rows[500:600], 7, "split"))
    others = (row_uniforms(rows, 7, "folds"), row_uniforms(rows, 8, "split"), np.roll(uniforms, 1))
    for other in others:
        assert abs(np.corrcoef(uniforms, other)[0, 1]) < 4 / np.sqrt(len(rows))


def test_a_group_has_one_number() -> None:
    groups = np.array([f"g{i % 500}" for i in range(2_000)], object)
    uniforms = group_uniforms(groups, 1, "split")
    assert len(set(uniforms.tolist())) == 500
    np.testing.assert_array_equal(uniforms[:500], uniforms[500:1_000])
    assert abs(uniforms.mean() - 0.5) < 4 * 0.2887 / np.sqrt(500)


@pytest.mark.parametrize("split", ["random", "last", SplitBy(by="shop"), SplitTime(time="when")])
def test_sets_have_their_shares_and_keep_the_order(split: Any) -> None:
    columns = make(4_000)
    config = config_of(columns, training=TrainingConfig(epochs=1, seed=5, split=split))
    table = replace(table_of(columns), config=config)
    found = survey(table)
    sets = Sets.of(config.training, found, 10**6)
    parts = [(block, sets.of_rows(block), sets.folds(block)) for block in table.usable([*TYPES])]
    of_rows = np.concatenate([part for _, part, _ in parts])
    assert len(of_rows) == found.usable == np.isfinite(columns["y"]).sum()
    share = (of_rows == SCORES).mean()
    if isinstance(split, SplitBy):
        assert 0 < share < 0.5
        shops = np.concatenate([block.columns["shop"] for block, _, _ in parts])
        for shop in set(shops.tolist()):
            assert len(set(of_rows[shops == shop].tolist())) == 1
    else:
        assert abs(share - 0.1) < 4 * np.sqrt(0.09 / len(of_rows))
    if split == "last":
        assert (np.diff(of_rows) >= 0).all()
    if isinstance(split, SplitTime):
        when = np.concatenate([block.columns["when"] for block, _, _ in parts])
        assert (np.diff(of_rows[np.argsort(when)]) >= 0).all()
    folds = np.concatenate([part for _, _, part in parts])[of_rows == TRAINING]
    assert set(folds.tolist()) <= set(range(sets.num_folds))


def test_held_out_sets_have_at_most_so_many_rows() -> None:
    table = table_of(make(4_000))
    found = survey(table)
    sets = Sets.of(table.config.training, found, 100)
    scored = sum((sets.of_rows(b) == SCORES).sum() for b in table.usable([]))
    assert abs(scored - 100) < 4 * 10


def test_totals_are_the_statistics_of_all_rows() -> None:
    columns, table = make(1_000), table_of(make(1_000))
    small = prepare(columns, TYPES, table.config)
    usable = UsableRows.of(columns, "y", None).index
    whole = {name: values[usable] for name, values in columns.items()}
    expected = summarise_columns(whole, small.model.encoder, "y", "number")
    for one in expected:
        role = one.role
        total = ColumnTotals(one.name, role, one.type)
        for block in table.usable([one.name]):
            total.add(block.columns[one.name])
        found = total.summary
        for name in ("missing", "min", "max", "levels", "num_levels"):
            assert getattr(found, name) == getattr(one, name), (one.name, name)
        if one.type == "number":
            assert found.mean == pytest.approx(one.mean, rel=1e-12)
            assert found.std == pytest.approx(one.std, rel=1e-12)


@pytest.mark.parametrize("memory", [2**10, 2**14, 2**30])
@pytest.mark.parametrize("size", [1, 30, 1_000])
def test_rows_are_on_disk_once_in_the_order_of_their_hashes(
    tmp_path: Path, memory: int, size: int
) -> None:
    rows = np.arange(500)
    hashes = row_hashes(rows, 1, "order")
    inputs = np.stack([rows, -rows], axis=1).astype(np.float32)
    parts = (
        EncodedPart(hashes[p], inputs[p], rows[p].astype(np.float64), rows[p] % 3)
        for p in (slice(start, start + size) for start in range(0, 500, size))
    )
    stored = write_shuffled(parts, 500, tmp_path, memory)
    expected = np.argsort(hashes)
    np.testing.assert_array_equal(stored.rows.targets.numpy(), expected)
    np.testing.assert_array_equal(stored.rows.inputs.numpy(), inputs[expected])
    np.testing.assert_array_equal(stored.folds.numpy(), expected % 3)
    assert stored.rows.weights is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folds", "inputs", "targets"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        ONCE,
        {"weight": "w"},
        {"target": "kind"},
        {"target": "kind", "training": TrainingConfig(effort="quick", class_weight="balanced")},
        {"training": TrainingConfig(effort="quick", groups="city")},
    ],
)
def test_a_table_that_fits_is_encoded_as_in_memory(tmp_path: Path, given: dict[str, Any]) -> None:
    columns = make(1_500)
    table = table_of(columns, **given)
    streamed = prepare_streamed(table, TYPES, tmp_path, MEMORY)
    expected = in_memory(streamed, columns, table.config)
    found, order = streamed.problem, order_of(streamed, table.config)
    assert found.model.encoder == expected.model.encoder
    assert found.model.target == expected.model.target
    assert found.model.groups == expected.model.groups
    for name in ("rows", "stopping", "calibration", "scores"):
        one, other = getattr(found, name), getattr(expected, name)
        if name == "rows":
            other = other[order]
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one.inputs, other.inputs, rtol=0, atol=0, equal_nan=True)
            torch.testing.assert_close(one.targets, other.targets, rtol=0, atol=0)
            torch.testing.assert_close(one.weights, other.weights, rtol=1e-6, atol=0)
    if isinstance(expected, FoldProblem):
        assert isinstance(found, StreamedFolds)
        assert found.folds.of_row.tolist() == expected.folds.of_row[order].tolist()
    left = {note for note in found.model.notes if not note.startswith("streamed")}
    assert left >= {note for note in expected.model.notes if "left out" not in note}
    ours, theirs = found.profile, expected.profile
    assert (ours.learned, ours.held_out) == (theirs.learned, theirs.held_out)
    for one, other in zip(ours.columns, theirs.columns, strict=True):
        assert (one.name, one.min, one.max, one.missing) == (
            other.name,
            other.min,
            other.max,
            other.missing,
        )
        assert one.levels == other.levels


@pytest.mark.training
@pytest.mark.parametrize("given", [{}, ONCE])
def test_the_same_order_gives_the_same_weights(tmp_path: Path, given: dict[str, Any]) -> None:
    """Rows on disk and rows in memory are fitted alike, bit for bit."""
    columns = make(1_200)
    table = table_of(columns, **given)
    streamed = prepare_streamed(table, TYPES, tmp_path, MEMORY)
    expected, order = in_memory(streamed, columns, table.config), order_of(streamed, table.config)
    on_disk: Any = streamed.problem
    changed: dict[str, Any] = {"rows": expected.rows[order]}
    if isinstance(expected, FoldProblem):
        changed["folds"] = Folds(expected.folds.of_row[order], expected.folds.count)
        on_disk = _one_candidate(on_disk)
    in_order = replace(on_disk, **changed)
    states = []
    for problem in (on_disk, in_order):
        stages = StageRunner(ProgressReporter(1, ignore), lambda: False, None)
        states.append(Fitting(problem, stages).fit().state)
    one, other = (state.tensors() for state in states)
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def _one_candidate(problem: Any) -> Any:
    model = problem.model
    candidate = first_candidate(problem.folds.count, "heteroscedastic", model.target, 1_000)
    training = replace(model.config.training, epochs=2)
    config = replace(model.config, training=training)
    problem = replace(problem, model=replace(model, config=config))
    return joined(problem, [candidate])


def test_what_a_sample_lacks_is_known_nevertheless(tmp_path: Path) -> None:
    """One row of a class, one missing value, one extreme and one level among many rows."""
    columns = make(30_000)
    columns["flag"][20_001] = np.nan
    columns["x"][20_002] = 50.0
    columns["city"][20_003] = "rare"
    columns["kind"][20_004] = "only once"
    table = table_of(columns, target="kind")
    found = survey(table)
    limits = Limits(2_000, 1_000)
    sets = Sets.of(table.config.training, found, limits.held_out)
    gathered = gather(table, TYPES, sets, limits)
    sampled = len(gathered.division.training)
    assert abs(sampled - 2_000) < 4 * np.sqrt(2_000) + 50
    assert "only once" in gathered.columns["kind"]
    assert np.nanmax(gathered.columns["x"]) == 50.0
    assert np.isnan(gathered.columns["flag"]).any()
    assert gathered.totals[2].levels["rare"] == 1


def test_levels_that_no_sampled_row_has_are_not_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = make(8_000)
    columns["city"][4_000] = "rare"
    table = table_of(columns)
    monkeypatch.setattr(Limits, "of", classmethod(lambda cls, *_: cls(400, 200)))
    streamed = prepare_streamed(table, TYPES, tmp_path, MEMORY)
    encoder = streamed.problem.model.encoder
    rows = {name: values[4_000:4_001] for name, values in columns.items()}
    place = [f.name for f in encoder.features].index("city")
    assert encoder.column_scores(rows)[0, place] == 0.0
    rows["city"] = np.array(["never"], object)
    assert encoder.column_scores(rows)[0, place] > 0.0
    learned = streamed.problem.profile.learned
    assert learned == len(streamed.problem.rows) > 7_000
    (note,) = [n for n in streamed.problem.model.notes if n.startswith("streamed")]
    assert f"the fits read {learned} rows" in note


def test_a_stream_stops_between_blocks(tmp_path: Path) -> None:
    table = replace(table_of(make(500)), should_stop=lambda: True)
    with pytest.raises(Stopped):
        prepare_streamed(table, TYPES, tmp_path, MEMORY)


def test_a_table_without_targets_is_refused(tmp_path: Path) -> None:
    columns = make(500)
    table = table_of(columns)
    columns["y"][5:] = np.nan
    with pytest.raises(InvalidData, match=r"\d rows have a target; at least 10 are needed"):
        prepare_streamed(replace(table, blocks=Memory(columns)), TYPES, tmp_path, MEMORY)


def test_a_split_that_leaves_nothing_to_score_is_refused(tmp_path: Path) -> None:
    columns = make(500)
    columns["shop"][:] = "the only one"
    training = TrainingConfig(effort="quick", split=SplitBy(by="shop"))
    table = table_of(columns, training=training)
    with pytest.raises(InvalidData, match="the split leaves no rows"):
        prepare_streamed(table, TYPES, tmp_path, MEMORY)


def test_every_row_is_in_one_batch_of_a_pass(tmp_path: Path) -> None:
    table = table_of(make(700), **ONCE)
    streamed = prepare_streamed(table, TYPES, tmp_path, MEMORY)
    problem = streamed.problem
    assert isinstance(problem, StreamedProblem)
    task, training = problem.task, table.config.training
    for epoch in (0, 1):
        batches = task.batches(training, epoch)
        assert len(batches) == task.num_batches(training)
        assert sorted(torch.cat(list(batches)).tolist()) == list(range(len(problem.rows)))
        assert all(((b[1:] - b[:-1]) % len(problem.rows) == 1).all() for b in batches)


def test_few_steps_read_a_share_of_the_rows_in_an_epoch() -> None:
    assert Stream(steps=100, epochs=10).per_epoch(1_000_000, 128) == 100_000
    assert Stream(steps=100_000, epochs=10).per_epoch(1_000_000, 128) == 1_000_000
    assert Stream(steps=1_000, epochs=10).per_epoch(50_000, 128) == 12_800


@pytest.mark.training
@pytest.mark.parametrize("target", ["y", "kind"])
def test_a_streamed_model_is_as_good_as_one_in_memory(tmp_path: Path, target: str) -> None:
    """Held-out log likelihoods agree within four standard errors of the difference of two splits.

    Both hold out about 400 of 4,000 rows, at random and independently.
    """
    columns = make(4_000)
    training = TrainingConfig(epochs=30, seed=3)
    config = config_of(columns, **{**ONCE, "training": training, "target": target})
    run = TrainingRun()
    streamed = train_streamed(Memory(columns), TYPES, config, run, tmp_path, MEMORY).model
    whole = train(columns, TYPES, config)
    ours, theirs = (m.variants_by_prune[0.0].metrics for m in (streamed, whole))
    errors = [m["standard_errors"]["log_likelihood"] for m in (ours, theirs)]
    difference = ours["log_likelihood"] - theirs["log_likelihood"]
    assert abs(difference) < 4 * np.hypot(*errors)
    assert streamed.card["rows"].keys() == whole.card["rows"].keys()


@pytest.mark.training
def test_a_race_is_streamed(tmp_path: Path) -> None:
    columns = make(600)
    features = tuple(FeatureConfig(name=n, type=TYPES[n]) for n in ("x", "city"))  # type: ignore[arg-type]
    config = config_of(columns, features=features)
    config = replace(config, training=replace(config.training, epochs=4))
    found = train_streamed(Memory(columns), TYPES, config, TrainingRun(), tmp_path, MEMORY)
    assert found.model.variants_by_prune[0.0].metrics["log_likelihood"] > -2.5
    assert isinstance(found.columns["y"], np.ndarray)
    assert len(found.columns["y"]) == np.isfinite(columns["y"]).sum()
