"""What a model's card is made of, beside numpy, scikit-learn, scipy and pruning itself."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.calibration import calibration_curve

from models.artifact.files import read_card, read_model, write_model
from models.config import FeatureConfig, MLPConfig, ModelConfig, TrainingConfig
from models.evaluation.reliability import MAX_BINS, PIT_BINS, pit_histogram, reliability_bins
from models.exceptions import CorruptArtifact
from models.features.columns import ColumnProfile, Columns
from models.features.feature_encoder import FeatureEncoder
from models.inference.bbb import BBBState
from models.inference.point import DrawsState
from models.posteriors.mean_field import MeanFieldNormal
from models.posteriors.pruning import prune, signal_to_noise
from models.posteriors.variant import Variant
from models.tabular.model import TabularModel
from models.tabular.preparation import prepare
from models.training.card import MAX_EPOCHS, describe_weights, thin
from models.training.recipe import resolve
from models.training.row_profile import summarise_columns
from models.training.train import train


def test_bins_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    confidence = random.uniform(0.2, 1.0, 1500)
    correct = (random.random(1500) < confidence**2).astype(float)
    bins = reliability_bins(torch.from_numpy(confidence), torch.from_numpy(correct))
    accuracy, mean = calibration_curve(correct, confidence, n_bins=MAX_BINS, strategy="quantile")
    assert [b["rows"] for b in bins] == [100] * MAX_BINS
    assert [b["accuracy"] for b in bins] == pytest.approx(accuracy.tolist())
    assert [b["confidence"] for b in bins] == pytest.approx(mean.tolist())


def test_few_rows_make_few_bins() -> None:
    bins = reliability_bins(torch.tensor([0.9, 0.6]), torch.tensor([1.0, 0.0]))
    assert [(b["rows"], b["accuracy"]) for b in bins] == [(1, 0.0), (1, 1.0)]


def test_the_histogram_of_right_distributions_is_flat() -> None:
    """The p-value of a chi-square test is below 1e-4 once in 10,000 seeds."""
    y = np.random.default_rng(1).normal(3.0, 2.0, 4000)
    counts = pit_histogram(torch.from_numpy(stats.norm(3.0, 2.0).cdf(y)))
    assert counts == np.histogram(stats.norm(3.0, 2.0).cdf(y), PIT_BINS, (0, 1))[0].tolist()
    assert stats.chisquare(counts).pvalue > 1e-4
    narrow = pit_histogram(torch.from_numpy(stats.norm(3.0, 1.0).cdf(y)))
    assert stats.chisquare(narrow).pvalue < 1e-9


def test_certainties_and_what_is_no_number_have_their_place() -> None:
    counts = pit_histogram(torch.tensor([0.0, 1.0, float("nan")]))
    assert (counts[0], counts[-1], sum(counts)) == (1, 1, 2)


@pytest.fixture
def posterior() -> MeanFieldNormal:
    """Ratios from −90 to 50 dB, one mean of exactly 0."""
    generator = torch.Generator().manual_seed(0)
    loc = 10 ** (2 * torch.randn(997, generator=generator) - 1)
    rho = torch.randn(997, generator=generator)
    loc[0] = 0.0
    return MeanFieldNormal(loc, rho)


def test_ratios_are_counted_in_decibels(posterior: MeanFieldNormal) -> None:
    found = describe_weights({0.0: Variant(0.0, BBBState(posterior, {}))})
    assert found is not None
    with np.errstate(divide="ignore"):
        db = 20 * np.log10(signal_to_noise(posterior).double().numpy())
    counts, edges = np.histogram(db.clip(-60, 59.999), np.arange(-60, 61))
    used = np.flatnonzero(counts)
    assert found["first"] == edges[used[0]]
    assert sum(found["counts"]) == 997
    # float32 and float64 may disagree about a weight at an edge
    wanted = counts[used[0] : used[-1] + 1]
    assert np.abs(np.array(found["counts"]) - wanted).sum() <= 4


def test_a_cut_is_where_pruning_cuts(posterior: MeanFieldNormal) -> None:
    state = BBBState(posterior, {})
    fractions = (0.5, 0.9)
    variants = {p: Variant(p, state) for p in (0.0, *fractions)}
    found = describe_weights(variants)
    assert found is not None
    for cut, fraction in zip(found["cuts"], fractions, strict=True):
        mask = prune(posterior, fraction).mask
        assert mask is not None
        kept = signal_to_noise(posterior)[mask]
        assert cut["prune"] == fraction
        assert cut["at"] == pytest.approx(20 * np.log10(float(kept.min())), abs=1e-4)


def test_methods_without_a_scale_per_weight_have_no_ratio() -> None:
    assert describe_weights({0.0: Variant(0.0, DrawsState(torch.zeros(1, 3), {}))}) is None


def test_a_long_curve_keeps_both_ends_and_the_looks_at_held_out_rows() -> None:
    history = [
        {"epoch": e, "held_out_log_likelihood": float(e) if e % 50 == 0 else None}
        for e in range(1, 5001)
    ]
    kept = thin(history)
    assert len(kept) <= MAX_EPOCHS
    assert (kept[0]["epoch"], kept[-1]["epoch"]) == (1, 5000)
    assert sum(e["held_out_log_likelihood"] is not None for e in kept) >= 100
    assert kept == sorted(kept, key=lambda e: e["epoch"])
    assert thin(history[:7]) == history[:7]


def table() -> tuple[Columns, dict[str, str]]:
    """Every type of column, with gaps."""
    random = np.random.default_rng(2)
    size = random.normal(size=200)
    size[::20] = np.nan
    kind = np.array(random.choice(["ash", "oak", "elm"], 200), dtype=object)
    kind[3] = None
    columns: Columns = {
        "size": size,
        "kind": kind,
        "wet": (random.random(200) < 0.3).astype(float),
        "day": np.datetime64("2026-01-01", "us") + np.arange(200) * np.timedelta64(1, "D"),
        "image": random.normal(size=(200, 2, 3)).astype(np.float32),
        "y": random.normal(5, 2, 200),
    }
    types = dict(
        zip(columns, ("number", "category", "boolean", "datetime", "tensor", "number"), strict=True)
    )
    return columns, types


def test_columns_are_summarised_as_numpy_does() -> None:
    columns, types = table()
    names = [name for name in columns if name != "y"]
    features = [FeatureConfig(name=n, type=types[n]) for n in names]  # type: ignore[arg-type]
    encoder = FeatureEncoder.fit(features, types, columns)
    found = {c.name: c for c in summarise_columns(columns, encoder, "y", "number")}
    size, image = columns["size"], columns["image"].astype(np.float64)
    assert [c.role for c in found.values()] == ["feature"] * 5 + ["target"]
    for column, values in (("size", size), ("image", image), ("y", columns["y"])):
        summary = found[column]
        numbers = [summary.min, summary.max, summary.mean, summary.std]
        wanted = [f(values) for f in (np.nanmin, np.nanmax, np.nanmean, np.nanstd)]
        assert numbers == pytest.approx(wanted)
    assert (found["size"].missing, found["kind"].missing, found["y"].missing) == (10, 1, 0)
    assert found["image"].shape == (2, 3)
    assert found["kind"].levels is not None
    assert dict(found["kind"].levels) == {
        level: int((columns["kind"] == level).sum()) for level in ("ash", "elm", "oak")
    }
    wet = int(columns["wet"].sum())
    assert found["wet"].levels == (("false", 200 - wet), ("true", wet))
    assert (found["day"].min, found["day"].max) == ("2026-01-01T00:00:00Z", "2026-07-19T00:00:00Z")


def test_all_classes_of_a_target_are_counted() -> None:
    """More than are told of a feature, and one that none of these rows has."""
    columns: Columns = {
        "x": np.arange(120.0),
        "y": np.array([f"c{i % 60:02}" for i in range(120)], dtype=object),
    }
    types = {"x": "number", "y": "category"}
    encoder = FeatureEncoder.fit([FeatureConfig(name="x", type="number")], types, columns)
    classes = [*(f"c{i:02}" for i in range(60)), "unseen"]
    *_, target = summarise_columns(columns, encoder, "y", "category", classes)
    assert target.num_levels == 61
    assert target.levels == (*((f"c{i:02}", 2) for i in range(60)), ("unseen", 0))


def test_a_class_that_only_held_out_rows_have_is_on_the_card() -> None:
    kinds = np.array([*(["ash", "oak"] * 50), "elm"], dtype=object)
    columns: Columns = {"x": np.arange(101.0), "y": kinds}
    types = {"x": "number", "y": "category"}
    profiles = [ColumnProfile(name=name, type=kind) for name, kind in types.items()]
    config = ModelConfig(target="y", training=TrainingConfig(split="last"))
    prepared = prepare(columns, types, resolve(config, profiles, 101))
    *_, target = prepared.profile.columns
    assert target.levels is not None
    assert target.levels[-1] == ("elm", 0)


def small_model(*, stopping: float = 0.0, refit: bool = False) -> TabularModel:
    columns, types = table()
    profiles = [
        ColumnProfile(name=n, type=t, shape=(2, 3) if t == "tensor" else None)
        for n, t in types.items()
    ]
    training = TrainingConfig(epochs=3, fine_tune_epochs=1, stopping_fraction=stopping, refit=refit)
    config = ModelConfig(
        target="y", network=MLPConfig(hidden=(4,)), training=training, pruning=(0.5,)
    )
    model = train(columns, types, resolve(config, profiles, 200))
    assert isinstance(model, TabularModel)
    return model


def test_training_leaves_a_card(tmp_path: Path) -> None:
    model = small_model()
    rows, curve = model.card["rows"], model.card["learning_curve"]
    assert counts(model) == (161, 0, 19, 20)
    assert rows["columns"][-1]["name"] == "y"
    assert [e["epoch"] for e in curve] == [1, 2, 3]
    assert model.card["signal_to_noise"] == describe_weights(model.variants_by_prune)
    assert sum(model.variant(0.0).metrics["pit"]) == 20
    write_model(model, tmp_path)
    stored = read_card(tmp_path)
    assert stored == json.loads(json.dumps(model.card))
    assert read_model(tmp_path).card == stored


def counts(model: TabularModel) -> tuple[int, ...]:
    rows = model.card["rows"]
    return tuple(rows[use] for use in ("learned", "stopping", "calibration", "held_out"))


def test_every_row_is_accounted_for_once() -> None:
    """Refitted weights have learned from the rows that chose the epoch."""
    assert counts(small_model(stopping=0.1)) == (141, 20, 19, 20)
    assert counts(small_model(stopping=0.1, refit=True)) == (161, 0, 19, 20)


def test_a_damaged_card_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    write_model(small_model(), tmp_path)
    path, manifest = tmp_path / "card.json", tmp_path / "manifest.json"
    path.write_text("{}")
    with pytest.raises(CorruptArtifact, match=r"card\.json"):
        read_card(tmp_path)
    path.unlink()
    files = json.loads(manifest.read_text())
    del files["files"]["card.json"]
    manifest.write_text(json.dumps(files))
    with pytest.raises(CorruptArtifact, match=r"does not name model\.json and card\.json"):
        read_model(tmp_path)
