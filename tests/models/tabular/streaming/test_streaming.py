"""What is read in blocks is what would be read at once; what is sampled is said to be so."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from models.card import ColumnTotals, summarise_columns
from models.config import (
    BBBConfig,
    FeatureConfig,
    MLPConfig,
    ModelConfig,
    SplitBy,
    SplitTime,
    SWAGConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, Columns
from models.features.weights import UsableRows
from models.tabular.fold_problem import FoldProblem
from models.tabular.preparation import Assigned, prepare
from models.tabular.row_problem import RowProblem
from models.tabular.streaming import blocks as blocks_module
from models.tabular.streaming.blocks import Table, row_hashes, survey
from models.tabular.streaming.encoding import EncodedPart, write_shuffled
from models.tabular.streaming.gathering import SCORES, TRAINING, Sets
from models.tabular.streaming.limits import encoded_bytes, is_streamed
from models.tabular.streaming.on_disk import FoldsOnDisk, RowsOnDisk
from models.tabular.streaming.streamed import Streamed, prepare_streamed, train_streamed
from models.training.recipe import resolve
from models.training.train import TrainingRun
from tests.models.training.fitting import profile

TYPES = {
    "x": "number",
    "skewed": "number",
    "city": "category",
    "flag": "boolean",
    "when": "datetime",
    "shop": "category",
    "w": "number",
    "y": "number",
    "kind": "category",
}
FEATURES = ("x", "skewed", "city", "flag", "when", "shop")


@dataclass(frozen=True)
class Memory:
    """Blocks of columns in memory."""

    columns: Columns

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.columns.values())))

    def read(self, start: int, stop: int, names: Sequence[str] | None = None) -> Columns:
        wanted = list(self.columns) if names is None else names
        return {name: self.columns[name][start:stop].copy() for name in wanted}


def make(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """A table of all types with missing values; y follows from x, city, shop and noise."""
    random = np.random.default_rng(seed)
    x, city = random.normal(size=rows), random.integers(0, 4, rows)
    shop = (random.pareto(1.0, rows) * 8).astype(int).clip(0, 60)
    effects = np.random.default_rng(1).normal(size=61)
    y = x + 0.5 * city + effects[shop] + 0.5 * random.normal(size=rows)
    cities = np.array([f"c{i}" for i in city], object)
    cities[random.random(rows) < 0.05] = None
    start = np.datetime64("2024-01-01T00:00", "us")
    return {
        "x": np.where(random.random(rows) < 0.03, np.nan, x),
        "skewed": random.lognormal(size=rows),
        "city": cities,
        "flag": random.integers(0, 2, rows).astype(float),
        "when": start + (random.random(rows) * 400 * 86_400e6).astype("timedelta64[us]"),
        "shop": np.array([f"s{i}" for i in shop], object),
        "w": random.integers(1, 4, rows).astype(float),
        "y": np.where(random.random(rows) < 0.02, np.nan, y),
        "kind": np.array(["low", "middle", "high"], object)[np.digitize(y, [0.0, 2.0])],
    }


def profiles(columns: Columns) -> list[ColumnProfile]:
    return [profile(name, values, TYPES[name]) for name, values in columns.items()]


def config_of(columns: Columns, **given: Any) -> ModelConfig:
    """A configuration of the features with every setting filled in."""
    training = TrainingConfig(effort="quick", seed=3)
    features = tuple(FeatureConfig(name=n, type=TYPES[n]) for n in FEATURES)  # type: ignore[arg-type]
    options = {"target": "y", "features": features, "training": training, "pruning": (), **given}
    return resolve(ModelConfig(**options), profiles(columns), len(columns["y"]))


def table_of(columns: Columns, **given: Any) -> Table:
    return Table(Memory(columns), config_of(columns, **given))


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


@pytest.mark.parametrize(("memory", "size"), [(2**10, 30), (2**14, 1), (2**30, 1_000)])
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
    stored, of_row = write_shuffled(parts, 500, tmp_path, memory)
    expected = np.argsort(hashes)
    np.testing.assert_array_equal(stored.targets.numpy(), expected)
    np.testing.assert_array_equal(stored.inputs.numpy(), inputs[expected])
    np.testing.assert_array_equal(of_row.numpy(), expected % 3)
    assert stored.weights is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folds", "inputs", "targets"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        ONCE,
        {"weight": "w"},
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
        assert isinstance(found, FoldsOnDisk)
        assert found.folds.of_row.tolist() == expected.folds.of_row[order].tolist()
    ours, theirs = found.profile, expected.profile
    assert (ours.learned, ours.held_out) == (theirs.learned, theirs.held_out)
    for one, other in zip(ours.columns, theirs.columns, strict=True):
        for name in ("name", "min", "max", "missing", "levels"):
            assert getattr(one, name) == getattr(other, name)


def test_every_row_is_in_one_batch_of_a_pass(tmp_path: Path) -> None:
    table = table_of(make(700), **ONCE)
    streamed = prepare_streamed(table, TYPES, tmp_path, MEMORY)
    problem = streamed.problem
    assert isinstance(problem, RowsOnDisk)
    task, training = problem.task, table.config.training
    for epoch in (0, 1):
        batches = task.batches(training, epoch)
        assert len(batches) == task.num_batches(training)
        assert sorted(torch.cat(list(batches)).tolist()) == list(range(len(problem.rows)))
        assert all(((b[1:] - b[:-1]) % len(problem.rows) == 1).all() for b in batches)


def test_a_race_is_streamed(tmp_path: Path) -> None:
    columns = make(300)
    features = tuple(FeatureConfig(name=n, type=TYPES[n]) for n in ("x", "city"))  # type: ignore[arg-type]
    config = config_of(columns, features=features)
    config = replace(config, training=replace(config.training, epochs=2))
    model, streamed = train_streamed(
        Memory(columns), TYPES, config, TrainingRun(), tmp_path, MEMORY
    )
    assert model.variants_by_prune[0.0].metrics["log_likelihood"] > -2.5
    assert isinstance(streamed.columns["y"], np.ndarray)
    assert len(streamed.columns["y"]) == np.isfinite(columns["y"]).sum()


PLAIN = ModelConfig(
    target="y", task="regression", features=(FeatureConfig(name="x", type="number"),)
)
COLUMNS = {
    "x": ColumnProfile(name="x", type="number"),
    "image": ColumnProfile(name="image", type="tensor", shape=(28, 28)),
}


@pytest.mark.parametrize("given", [{}, ONCE])
def test_the_estimate_is_an_upper_bound(given: dict[str, Any]) -> None:
    columns = make(1_000)
    config = config_of(columns, **given)
    problem = prepare(columns, TYPES, config)
    sets = (problem.rows, problem.stopping, problem.calibration, problem.scores)
    actual = sum(4 * rows.inputs.numel() for rows in sets if rows is not None)
    known = {profile.name: profile for profile in profiles(columns)}
    assert actual <= encoded_bytes(config, known, 1_000) <= 4 * actual


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"task": "forecasting"}, "/task"),
        ({"method": SWAGConfig(kind="swag")}, "/method/kind"),
        ({"training": TrainingConfig(refit=True)}, "/training/refit"),
        ({"features": (FeatureConfig(name="image", type="tensor"),)}, "/features"),
    ],
)
def test_what_cannot_be_streamed_is_named(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidData) as raised:
        is_streamed([replace(PLAIN, **changes)], COLUMNS, 1_000_000, 2**20)
    assert raised.value.path == path
    assert "CREDENCE_TRAINING_MEMORY_BYTES=1048576" in raised.value.message
