"""Columns become inputs: levels, quantiles, effects, texts, clocks, and missing ones."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, rankdata, t

from models.artifact.export import build
from models.artifact.files import read_model, write_model
from models.config import (
    DropoutConfig,
    FeatureConfig,
    MAPConfig,
    MLPConfig,
    SGLDConfig,
    TrainingConfig,
)
from models.exceptions import InvalidInput
from models.features.categories import (
    CategoryEncoder,
    LevelEffects,
    codes_of,
    places_of,
)
from models.features.clock import Clock, second_times
from models.features.encoders import BOUND, DatetimeEncoder, NumberEncoder
from models.features.encodings import encode
from models.features.expansion import Distinct, Expansion, Form, NormalScore, Pieces
from models.features.feature_encoder import FeatureEncoder
from models.features.imputation import MOST, Imputed
from models.features.texts import WIDTH, TextEncoder
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from tests.models.training.fitting import trained

ROWS = 400
TYPES = {
    "size": "number", "wet": "boolean", "city": "category", "day": "datetime", "price": "number",
}  # fmt: skip


def table(rows: int = ROWS, seed: int = 0) -> dict[str, np.ndarray]:
    """Every type of column with gaps, except for `wet`; `price` is skewed, `size` Gaussian."""
    random = np.random.default_rng(seed)
    gap = random.random(rows) < 0.1
    days = np.datetime64("2024-01-01", "us") + np.arange(rows) * np.timedelta64(7, "h")
    return {
        "size": np.where(gap, np.nan, random.normal(size=rows)),
        "wet": (random.random(rows) < 0.3).astype(float),
        "city": random.choice(np.array(["Oslo", "Rome", "Bern", None], object), rows),
        "day": np.where(gap, np.datetime64("NaT"), days),
        "price": np.exp(2 * random.normal(size=rows)),
    }


def fit(columns: dict[str, np.ndarray], **types: str) -> FeatureEncoder:
    types = types or TYPES
    features = [FeatureConfig(name=n, type=t) for n, t in types.items()]  # type: ignore[arg-type]
    return FeatureEncoder.fit(features, types, columns, pieces=True)


def inputs(encoder: FeatureEncoder, columns: dict[str, np.ndarray]) -> torch.Tensor:
    return encoder.expand(encoder.encode(columns))


def objects(*values: str | None) -> np.ndarray:
    return np.array(values, dtype=object)


def test_every_input_belongs_to_a_feature() -> None:
    """The Gaussian column has no normal score: it would repeat the standardised value.

    Compact columns are the plain ones except for the slots, one code, and three positions.
    """
    encoder = fit(table())
    day = ["value", "score", "flag", *4 * ["wave"]]
    plain = {0: ["value", "flag"], 1: ["value"], 3: day, 4: ["value", "score"]}
    slots = {2: ["Bern", "Oslo", "Rome", "missing", "unknown"]}
    expected = [i for group in (plain, slots) for i, names in group.items() for _ in names]
    assert encoder.plain_columns.tolist() == list(range(17))
    assert encoder.feature_of.tolist() == expected + [i for i in (0, 3, 4) for _ in range(32)]
    assert encoder.compact_width == 12 + 1 + 3
    assert encoder.width == encoder.layout.width == 17 + 96
    assert inputs(encoder, table()).shape == (ROWS, encoder.width)


def test_rare_levels_share_the_slot_of_unknown_ones() -> None:
    values = objects(*["a"] * 5, *["b"] * 3, *["c"] * 2, "d")
    encoder = fit({"k": values}, k="category")
    found = inputs(encoder, {"k": objects("a", "b", "c", "d", "new", None)})
    assert found.argmax(1).tolist() == [0, 1, 2, 2, 2, 2]
    assert (found.sum(1) == 1).all()


@pytest.mark.parametrize(
    ("values", "slots"),
    [
        (["a"] * 9, 0),  # constant
        (["a", "b", "c"], 0),  # all are rare
        (["a", "b", None], 2),  # rare or missing
        (["a"] * 8 + [None], 3),
    ],
)
def test_a_category_is_as_wide_as_it_varies(values: list[str | None], slots: int) -> None:
    assert CategoryEncoder.fit(objects(*values), coded=True).form.width == slots


NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(seed=st.integers(0, 20), new=st.lists(NUMBERS, min_size=1, max_size=10))
def test_no_input_is_beyond_the_bound(seed: int, new: list[float]) -> None:
    random = np.random.default_rng(seed)
    training = random.standard_t(1.5, size=200) * 10.0 ** random.integers(-20, 20)
    encoder = fit({"a": training}, a="number")
    found = inputs(encoder, {"a": np.array(new)})
    assert torch.isfinite(found).all()
    assert found.abs().max() <= BOUND


def test_a_rare_level_is_not_new_and_a_missing_one_is_none() -> None:
    """The rare level shares a slot with new ones, so that its slot cannot tell."""
    values = objects(*["Oslo"] * 150, *["Rome"] * 100, "Bern", None)
    encoder = CategoryEncoder.fit(values, coded=True).marking(values)
    assert encoder.marked
    codes = encoder.read(objects("Oslo", "Bern", None, "Paris"))
    assert (codes == encoder.new).tolist() == [False] * 3 + [True]


@pytest.mark.parametrize(("alone", "marked"), [(2, True), (3, False)])
def test_levels_are_marked_only_where_new_ones_are_rare(alone: int, marked: bool) -> None:
    """Good's estimate: 2 of 200 rows with a level to themselves make 1 % of new levels."""
    values = objects(*["Oslo"] * (200 - alone), *(f"city {i}" for i in range(alone)))
    features = [FeatureConfig(name="city", type="category")]
    fitted = FeatureEncoder.fit(features, {"city": "category"}, {"city": values}, rate=0.01)
    (encoder,) = fitted.encoders
    assert isinstance(encoder, CategoryEncoder)
    assert encoder.marked == marked


def test_marks_of_new_levels_are_no_inputs() -> None:
    """Known values have the inputs of an encoder without marks; unknown ones are filled later."""
    columns = {"city": objects(*["Oslo", "Rome", "Bern"] * 100)}
    plain = fit(columns, city="category")
    types = {"city": "category"}
    marking = FeatureEncoder.fit(plain.features, types, columns, pieces=True, rate=0.01)
    rows = {"city": objects("Oslo", "Paris", None)}
    encoded = marking.encode(rows)
    torch.testing.assert_close(marking.expand(encoded)[:1], inputs(plain, rows)[:1])
    assert encoded[:, 0].isnan().tolist() == [False, True, True]
    assert marking.column_score(encoded).tolist() == [0, 1, 1]  # none was missing in training


def expanded(pieces: Pieces, values: np.ndarray) -> np.ndarray:
    compact = torch.from_numpy(encode(pieces.line, values)).float().unsqueeze(1)
    return Expansion.of([Form(pieces=(pieces,))])(compact).numpy()


def formula(pieces: Pieces, values: np.ndarray) -> np.ndarray:
    """Equation 1 of Gorishniy et al. 2022 with bounded outer pieces, centred."""
    edges = np.array(pieces.edges)
    shares = (values[:, None] - edges[:-1]) / np.diff(edges)
    return shares.clip(0, 1) - np.array(pieces.centres)


def test_pieces_are_those_of_the_formula() -> None:
    random = np.random.default_rng(0)
    values = random.gamma(0.7, size=5_000)
    pieces = Pieces.fit(Distinct.of(values))
    assert len(pieces) == 32
    new = np.concatenate([random.gamma(1.0, size=1_000), [-5.0, 1e30], pieces.edges])
    # A position of up to 32 has a rounding error of 2^-20 in float32.
    np.testing.assert_allclose(expanded(pieces, new), formula(pieces, new), atol=2e-6)


def test_a_repeated_value_leaves_quantiles_to_the_others() -> None:
    """With 95 % zeros plain quantiles would be 0, except for the last one or two."""
    values = np.concatenate([np.zeros(9_500), np.linspace(1, 2, 500)])
    assert len(Pieces.fit(Distinct.of(values))) > 12


def test_few_values_are_all_edges() -> None:
    values = np.repeat([1.0, 2.0, 5.0], [10, 5, 1])
    pieces = Pieces.fit(Distinct.of(values))
    assert pieces.edges == (1.0, 2.0, 5.0)
    assert pieces.centres == (6 / 16, 1 / 16)


def test_normal_scores_are_those_of_scipy() -> None:
    """Up to 256 distinct values every one is a knot; the ranks of equal values are averaged."""
    values = np.random.default_rng(3).integers(0, 200, 3_000) ** 2.0
    expected = norm.ppf((rankdata(values) - 0.5) / len(values))
    np.testing.assert_allclose(
        encode(NormalScore.fit(Distinct.of(values)).line, values), expected, atol=1e-12
    )


FINITE = st.floats(-1e300, 1e300, allow_nan=False)


@given(
    training=st.lists(FINITE, min_size=2, max_size=60, unique=True),
    new=st.lists(FINITE, min_size=1, max_size=20),
)
def test_no_value_leaves_the_range_of_training(training: list[float], new: list[float]) -> None:
    """Also for subnormal and for huge distances between edges."""
    distinct, values = Distinct.of(np.array([*training, 2e300])), np.array(new)
    score, pieces = NormalScore.fit(distinct), Pieces.fit(distinct)
    assert (np.abs(encode(score.line, values)) <= score.scores[-1] + 1e-9).all()
    found = encode(pieces.line, values)
    assert ((found >= 0) & (found <= len(pieces))).all()
    assert (np.abs(expanded(pieces, values)) <= 1).all()
    order = np.argsort(values)
    assert (np.diff(found[order]) >= 0).all()


LEVELS = 3_000
NOISE = 1.0  # deviation of the noise, and of the effects: at most half of the variance is known


def shops(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Levels of unequal frequency, the targets, and each row's true effect."""
    effects = np.random.default_rng(0).normal(size=LEVELS)
    random = np.random.default_rng(seed)
    index = (LEVELS * random.random(rows) ** 1.5).astype(int)
    names = np.array([f"shop {i}" for i in range(LEVELS)], dtype=object)
    return names[index], effects[index] + NOISE * random.normal(size=rows), effects[index]


def standardised(targets: np.ndarray) -> np.ndarray:
    return ((targets - targets.mean()) / targets.std()).reshape(-1, 1)


def test_effects_are_posterior_means_of_random_effects() -> None:
    """By the joint Gaussian of a level's targets: E[a | y] = 1ᵀ (1 1ᵀ + σ²/τ² I)⁻¹ (y − mean)."""
    random = np.random.default_rng(0)
    values = random.choice(np.array(list("abcdef"), object), 40)
    targets = standardised(random.normal(size=40) + (values == "a"))
    fitted = LevelEffects.fit(list("abcdef"), values, targets)
    [ratio] = fitted.noise_ratio
    for level, effect, certainty in zip(
        fitted.levels, fitted.effects[0], fitted.certainty, strict=True
    ):
        own = targets[values == level, 0]
        covariance = np.ones((len(own), len(own))) + ratio * np.eye(len(own))
        weights = np.linalg.solve(covariance, np.ones(len(own)))
        assert effect == pytest.approx(weights @ (own - targets.mean()))
        assert certainty == pytest.approx(weights.sum())  # 1 − Var[a | y]/τ²


def test_a_rows_own_fold_is_left_out_of_its_effect() -> None:
    values, targets, _ = shops(2_000, seed=2)
    outputs, folds = standardised(targets), np.arange(2_000) % 4
    levels = sorted(set(values))
    fitted = LevelEffects.fit(levels, values, outputs)
    codes = codes_of(places_of(levels), values)

    def inputs(outputs: np.ndarray) -> np.ndarray:
        tables = {
            k: np.array(one.columns) for k, one in fitted.by_fold(codes, outputs, folds).items()
        }
        return np.array([tables[k][:, code] for k, code in zip(folds, codes, strict=True)])

    found = inputs(outputs)
    changed = outputs + 100.0 * (folds == 1)[:, None]
    again = inputs(changed)
    same = np.isclose(found, again).all(1)
    assert same[folds == 1].all()
    assert same[(folds != 1) & (found[:, -1] > 0)].mean() < 0.05  # the others moved with the mean
    rest = folds != 1
    mean = outputs[rest].mean()
    row = int(np.flatnonzero(folds == 1)[0])
    own = outputs[rest & (values == values[row]), 0]
    expected = (own - mean).sum() / (len(own) + fitted.noise_ratio[0])
    assert found[row, 0] == pytest.approx(expected)


def test_identifiers_have_no_effects() -> None:
    """One row per level: the effect would be the row's own target."""
    values = np.array([f"id {i}" for i in range(1_000)], dtype=object)
    targets = np.random.default_rng(0).normal(size=(1_000, 1))
    encoder = CategoryEncoder.fit(values, coded=True, targets=targets)
    assert encoder.form.width == 0


def column(*texts: str | None) -> np.ndarray:
    return np.array([*texts, None], object)[:-1]


def test_a_text_is_the_signed_sum_of_its_known_features() -> None:
    texts = ["good house"] * 3 + ["bad house"] * 4 + ["view of the lake"] * 2
    encoder = TextEncoder.fit(column(*texts))
    assert len(encoder.hashes) == 5  # good, bad, house, "good house", "bad house": in 3 rows each
    good, bad, both = (
        encoder.read(column(t))[0].astype(float) for t in ("good", "bad", "good\nGOOD, bad! view")
    )
    for one in (good, bad):
        assert np.count_nonzero(one) == 1
        assert abs(one).max() == pytest.approx(math.sqrt(WIDTH))
    weights = np.array([(1 + math.log(2)) * (1 + math.log(10 / 4)), 1 + math.log(10 / 5)])
    expected = math.sqrt(WIDTH) * weights / np.linalg.norm(weights)
    for one, size in zip((good, bad), expected, strict=True):
        place = abs(one).argmax()
        assert both[place] == pytest.approx(math.copysign(size, one[place]), rel=1e-4)
    assert np.count_nonzero(both) == 2


def test_the_hash_never_changes() -> None:
    encoder = TextEncoder.fit(column(*["good", "bad", "schön"] * 3))
    encoded = [encoder.read(column(word))[0] for word in ("good", "bad", "schön")]
    assert [int(abs(one).argmax()) for one in encoded] == PLACES
    assert [float(np.sign(one.sum())) for one in encoded] == SIGNS


PLACES = [484, 130, 76]
SIGNS = [1, 1, 1]


def test_an_artifact_keeps_hashes_and_no_words(tmp_path: Path) -> None:
    texts = np.array(["lovely house", "dreadful house"] * 40, object)
    model = trained(
        {"review": texts, "y": np.arange(80.0)},
        {"review": "text", "y": "number"},
        features=(FeatureConfig(name="review", type="text"),),
        network=MLPConfig(hidden=(4,)),
        training=TrainingConfig(epochs=1, fine_tune_epochs=0),
        pruning=(),
    )
    write_model(model, tmp_path / "model")
    for file in (tmp_path / "model").iterdir():
        assert b"lovely" not in file.read_bytes(), file
    with pytest.raises(InvalidInput, match="'review' is text"):
        build(model)


def test_missing_empty_and_unknown_texts_are_zero_and_case_does_not_count() -> None:
    encoder = TextEncoder.fit(column(*["a b", "b c"] * 3))
    none, empty, unknown, first, second = encoder.read(column(None, "", "z", "A  b", "a, B!"))
    assert not none.any()
    assert not empty.any()
    assert not unknown.any()
    assert (first == second).all()
    assert first.any()
    assert not encoder.read(column("")).any()


def test_weights_count_as_rows() -> None:
    thrice = TextEncoder.fit(column(*["a b"] * 4, "c d", "c d", "c d"))
    weighted = TextEncoder.fit(column("a b", "c d"), np.array([4.0, 3.0]))
    assert thrice == weighted
    assert thrice.hashes


ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "UTC")


def _times(*texts: str) -> np.ndarray:
    return np.array(texts, dtype="datetime64[us]")


@pytest.mark.parametrize("zone", ZONES)
def test_offsets_are_those_of_zoneinfo(zone: str) -> None:
    seconds = np.random.default_rng(0).integers(-(10**9), 4 * 10**9, 2_000)
    place = ZoneInfo(zone)
    expected = [
        datetime.fromtimestamp(int(one), UTC).astimezone(place).replace(tzinfo=None)
        for one in seconds
    ]
    instants = seconds.astype("datetime64[s]").astype("datetime64[us]")
    local = Clock.of(zone).local(instants)
    assert (local == np.array(expected, dtype="datetime64[us]")).all()
    back, skipped = Clock.of(zone).instants(local)
    again = Clock.of(zone).repeats(back)
    assert not skipped.any()
    assert ((back == instants) | (back + again == instants)).all()  # of two the first


def test_times_that_the_clock_skipped_are_found() -> None:
    local = _times("2024-03-31T01:59", "2024-03-31T02:00", "2024-03-31T02:59", "2024-03-31T03:00")
    _, skipped = Clock.of("Europe/Berlin").instants(local)
    assert skipped.tolist() == [False, True, True, False]


def test_a_skipped_midnight_is_the_first_moment_of_its_day() -> None:
    clock, midnight = Clock.of("America/Sao_Paulo"), _times("2018-11-04")
    instants, skipped = clock.instants(midnight)
    assert (instants[0], bool(skipped[0])) == (np.datetime64("2018-11-04T03:00", "us"), False)
    assert clock.local(instants) == midnight


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_rows_tells_the_second_of_two_times(order: int) -> None:
    clock = Clock.of("Europe/Berlin")
    true = np.datetime64("2024-10-26T22:00", "us") + np.arange(12) * np.timedelta64(30, "m")
    first, _ = clock.instants(clock.local(true)[::order])
    assert len(set(first.tolist())) == 10
    assert (second_times(clock, first, None) == true[::order]).all()


def test_each_series_has_its_own_second_time() -> None:
    clock = Clock.of("Europe/Berlin")
    true = np.repeat(_times("2024-10-27T00:00", "2024-10-27T01:00"), 2)  # 2:00 twice
    keys = np.array(["a", "b"] * 2, dtype=object)
    first, _ = clock.instants(clock.local(true))
    assert (second_times(clock, first, keys) == true).all()


def test_phases_are_those_of_the_clock() -> None:
    nothing = NumberEncoder(mean=0.0, std=0.0, indicator=False)
    encoder = DatetimeEncoder(nothing, ("hour",), zone="Europe/Berlin")
    noon = encoder.read(_times("2024-01-15T11:00", "2024-07-15T10:00"))  # 12:00 in both
    assert (noon % 86_400e6 / 3_600e6).tolist() == [12.0, 12.0]


KNOWN_LEVELS = 6
TRAINING = TrainingConfig(epochs=30, batch_size=64, learning_rate=0.02, fine_tune_epochs=0)


def holed(rows: int = 300) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    x, level = random.normal(size=rows), random.integers(0, KNOWN_LEVELS, rows)
    y = 0.5 * x + 2.0 * (level - 2.5) + 0.3 * random.normal(size=rows)
    kind = np.where(y > 0, "high", "low").astype(object)
    return {"x": x, "level": np.array([f"l{i}" for i in level], object), "y": y, "kind": kind}


def fit_model(target: str, **config: Any) -> TabularModel:
    columns = {k: v for k, v in holed().items() if k in {"x", "level", target}}
    options = {"network": MLPConfig(hidden=(16,)), "training": TRAINING, "pruning": (0.5,)}
    if target == "y":  # a Gaussian, whose locations have no bounds
        options["likelihood"] = "heteroscedastic"
    return trained(columns, target=target, **options | config)


@pytest.fixture(scope="module")
def models() -> Mapping[str, TabularModel]:
    return {target: fit_model(target) for target in ("y", "kind")}


def rows(levels: Any, x: float = 0.4) -> dict[str, np.ndarray]:
    return {"x": np.full(len(levels), x), "level": np.array(levels, object)}


KNOWN = rows([f"l{i}" for i in range(KNOWN_LEVELS)])


@pytest.mark.parametrize(
    "options", [{}, {"sampler": "monte_carlo"}, {"sampler": "moments"}, {"prune": 0.5}]
)
def test_new_levels_are_mixed(models: Mapping[str, TabularModel], options: dict[str, Any]) -> None:
    """Their mean; and the spread of their means beside what is unknown about each."""
    asked = PredictOptions(samples=2_000, **options)
    model = models["y"]
    known, new = (model.predict(each, asked) for each in (KNOWN, rows(["new"])))
    imputed = model.encoder.imputed
    assert imputed is not None
    assert imputed[1] is not None
    spread = known.mean.var() * (1 + imputed[1].excess)
    np.testing.assert_allclose(new.mean, known.mean.mean(), atol=0.03 * spread**0.5)
    expected = known.variance["epistemic"].mean() + spread
    np.testing.assert_allclose(new.variance["epistemic"], expected, rtol=0.06)
    np.testing.assert_allclose(
        new.variance["aleatoric"], known.variance["aleatoric"].mean(), rtol=0.02
    )


@pytest.mark.parametrize("method", [MAPConfig(kind="map"), DropoutConfig(kind="mc_dropout")])
def test_samples_of_whole_weights_have_levels_too(method: MAPConfig | DropoutConfig) -> None:
    """Also of one network, whose single sample is not a single level."""
    model = fit_model("y", method=method, pruning=())
    known, new = (model.predict(each, PredictOptions()) for each in (KNOWN, rows(["new", "l0"])))
    assert new.variance["epistemic"][0] > 0.9 * known.mean.var()
    np.testing.assert_allclose(new.mean[1], known.mean[0])


def test_classes_have_the_mean_of_probabilities(models: Mapping[str, TabularModel]) -> None:
    known = models["kind"].predict(KNOWN, PredictOptions(samples=2_000))
    new = models["kind"].predict(rows(["new"]), PredictOptions(samples=2_000))
    # Levels are on either side of the classes' border: pushing them apart moves the mean little.
    np.testing.assert_allclose(new.mean[0], known.mean.mean(0), atol=0.06)
    assert new.entropy is not None
    assert known.entropy is not None
    assert new.entropy["epistemic"] > 10 * known.entropy["epistemic"].mean()


def test_a_missing_number_is_one_of_the_training_rows(models: Mapping[str, TabularModel]) -> None:
    imputed = models["y"].encoder.imputed
    assert imputed is not None
    assert imputed[0] is not None
    asked = PredictOptions(samples=2_000)
    each = {"x": np.array(imputed[0].values), "level": np.full(MOST, "l3", object)}
    known, new = (models["y"].predict(own, asked) for own in (each, rows(["l3"], np.nan)))
    np.testing.assert_allclose(new.mean, known.mean.mean(), atol=0.02)
    expected = known.variance["epistemic"].mean() + known.mean.var()
    np.testing.assert_allclose(new.variance["epistemic"], expected, rtol=0.06)
    assert [reason.code for reason in new["reasons"][0]] == ["missing_unseen"]


def test_other_rows_stay_as_before(models: Mapping[str, TabularModel], tmp_path: Path) -> None:
    """To the bit, whichever rows are beside them; a stored version with other loops to 1e-5."""
    asked = PredictOptions(samples=30)
    alone = models["y"].predict(KNOWN, asked)
    beside = rows(["new", *KNOWN["level"], None, "newer"])
    both = models["y"].predict(beside, asked)
    np.testing.assert_array_equal(both.mean[1:-2], alone.mean)
    assert (np.diff(both.mean[[0, -1]]) == 0).all()  # new levels are alike
    write_model(models["y"], tmp_path)
    stored = read_model(tmp_path).predict(beside, asked)
    np.testing.assert_allclose(stored.mean, both.mean, rtol=1e-5)


@pytest.mark.parametrize("levels", [3, 8, 60])
def test_intervals_have_the_width_of_a_t_distribution(levels: int) -> None:
    """Of a new effect given L: s √(1 + 1/L) t, here from the variance of the L themselves."""
    values = np.array([f"l{i:02d}" for i in range(levels)] * 2, object)
    found = Imputed.of_levels(CategoryEncoder.fit(values))
    assert len(found.values) == min(levels, MOST)
    half = 1.6449 * np.sqrt((levels - 1) / levels * (1 + found.excess))
    assert half == pytest.approx(t.ppf(0.95, levels - 1) * np.sqrt(1 + 1 / levels), rel=1e-3)


def test_rows_with_new_levels_are_explained_beside_known_ones() -> None:
    """By few stored draws, too, of which each stands for several samples of a filled row."""
    model = fit_model("y", method=SGLDConfig(kind="sgld", step_size=1e-6), pruning=())
    found = model.predict(rows(["l0", "new"]), PredictOptions(explain=True, samples=20))
    for part, values in (("mean", found.mean), ("epistemic", found.variance["epistemic"])):
        total = found.constants["base"][part] + found[f"{part}_contribution"].sum(1)
        np.testing.assert_allclose(total, values, rtol=1e-6)
    assert (found["mean_contribution_error"] > 0).any(1).all()
