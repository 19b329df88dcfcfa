"""Rows unlike training are flagged, with reasons, and holes are found."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from models.config import FeatureConfig, MLPConfig, TrainingConfig
from models.evaluation.detector import SURPRISE, Detector
from models.features.columns import Columns
from models.features.feature_encoder import FeatureEncoder
from models.features.rows import Rows
from models.features.seen_columns import SeenColumns, find_gaps
from models.out_of_distribution.row_reasons import find_reasons
from models.out_of_distribution.surprise import Surprise
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from tests.models.training.fitting import trained

TYPES = {"height": "number", "weight": "number", "place": "category"}
FEATURES = tuple(FeatureConfig(name=name, type=kind) for name, kind in TYPES.items())  # type: ignore[arg-type]
RATE = 0.05


def people(rows: int, seed: int) -> Columns:
    """Heights and weights with correlation 0.9; heavy tails, so that columns flag usual rows."""
    random = np.random.default_rng(seed)
    height, other = random.standard_t(5, (2, rows))
    return {
        "height": height,
        "weight": 0.9 * height + math.sqrt(1 - 0.9**2) * other,
        "place": np.array(["north", "south"], object)[random.integers(0, 2, rows)],
    }


@pytest.fixture(scope="module")
def known() -> tuple[FeatureEncoder, Surprise]:
    learned = people(800, 0)
    encoder = FeatureEncoder.fit(FEATURES, TYPES, learned, pieces=True, rate=RATE)
    x = encoder.encode_inputs(learned)
    begun = Surprise.begin(encoder, TYPES, learned, RATE)
    return encoder, begun.fit(Rows(x, torch.zeros(800)), seed=0)


def surprises(known: tuple[FeatureEncoder, Surprise], columns: Columns) -> np.ndarray:
    encoder, scores = known
    x = encoder.encode(columns)
    return scores(x, encoder.column_score(x)).numpy()


def test_the_false_alarm_rate_is_that_of_all(
    known: tuple[FeatureEncoder, Surprise],
) -> None:
    """For 400 draws of 99 held-out rows: P(a new row exceeds the bound) = 5/100 (conformal).

    The share above the fifth-largest of 99 is Beta(5, 95): its deviation is 0.0217, that of the
    mean of 400 is 0.0011; the 20,000 rows for all draws add 0.0015. Four deviations are 0.0075.
    """
    pool = surprises(known, people(20_000, 1))
    random = np.random.default_rng(2)
    alarms = [
        (pool > Detector.fit(SURPRISE, random.choice(pool, 99, replace=False), RATE).threshold)
        for _ in range(400)
    ]
    assert np.mean(alarms) == pytest.approx(RATE, abs=0.0075)


def test_a_strange_combination_is_flagged(
    known: tuple[FeatureEncoder, Surprise],
) -> None:
    """Each value is within 1.5 deviations of the mean; together they are 9 deviations off."""
    encoder, scores = known
    detector = Detector.fit(SURPRISE, surprises(known, people(999, 3)), RATE)
    rows: Columns = {
        "height": np.array([1.5, 1.5]),
        "weight": np.array([-1.5, 1.5]),
        "place": np.array(["north", "north"], object),
    }
    flagged = detector.flags(surprises(known, rows))
    assert flagged.tolist() == [True, False]
    found = find_reasons(encoder, rows, flagged, scores)
    assert {one.column for one in found[0]} == {"height", "weight"}
    assert {one.code for one in found[0]} == {"unusual_combination"}
    assert not found[1]


def test_images_are_compared_with_the_directions_of_training() -> None:
    """Smooth 6 × 6 images; the same pixels in another order are as bright."""
    random = np.random.default_rng(0)
    waves = np.sin(np.linspace(0, 3, 36)[None] * random.uniform(0.5, 2, (700, 1)))
    images = (waves + 0.05 * random.normal(size=waves.shape)).reshape(-1, 6, 6)
    features, types = (FeatureConfig(name="image", type="tensor"),), {"image": "tensor"}
    learned, usual = {"image": images[:400]}, {"image": images[400:]}
    mixed = images[400:].reshape(300, 36)[:, random.permutation(36)].reshape(300, 6, 6)
    encoder = FeatureEncoder.fit(features, types, learned, rate=RATE)
    begun = Surprise.begin(encoder, types, learned, RATE)
    scores = begun.fit(Rows(encoder.encode_inputs(learned), torch.zeros(400)), seed=0)
    detector = Detector.fit(SURPRISE, surprises((encoder, scores), usual), RATE)
    assert detector.flags(surprises((encoder, scores), {"image": mixed})).mean() > 0.95
    again = Surprise.unpack(scores.pack(), encoder)
    assert (
        surprises((encoder, again), usual).tolist() == surprises((encoder, scores), usual).tolist()
    )


JOBS = ("baker", "nurse", "pilot")
OPTIONS = PredictOptions(samples=8)


def passengers(rows: int, seed: int, *, classes: bool) -> dict[str, np.ndarray]:
    """Whole ages and hours; most gains are 0, as in the census."""
    random = np.random.default_rng(seed)
    age, hours = random.integers(17, 91, rows), random.integers(1, 100, rows)
    job = random.integers(0, 3, rows)
    income = age / 30 + hours / 40 + job + random.normal(size=rows)
    gains = np.where(random.random(rows) < 0.9, 0, random.integers(100, 99_999, rows))
    return {
        "age": age.astype(float),
        "hours": hours.astype(float),
        "job": np.array(JOBS, object)[job],
        "gains": gains.astype(float),
        "day": np.datetime64("2026-01-01", "us")
        + random.integers(0, 365, rows) * np.timedelta64(1, "D"),
        "y": np.where(income > 3.5, "rich", "poor").astype(object) if classes else income,
    }


def fit(*, classes: bool) -> TabularModel:
    network = MLPConfig(hidden=(8,))
    training = TrainingConfig(epochs=4, fine_tune_epochs=1, background=0)
    columns = passengers(1_500, 0, classes=classes)
    return trained(columns, network=network, training=training, pruning=())


@pytest.fixture(scope="module", params=[False, True], ids=["regression", "classification"])
def passengers_model(request: pytest.FixtureRequest) -> TabularModel:
    return fit(classes=request.param)


def strange(classes: bool) -> tuple[Columns, list[tuple[str, str, object]]]:
    """Rows with one strange value each, and its column, code and value."""
    rows = passengers(7, 3, classes=classes)
    rows["age"][0], rows["hours"][1], rows["job"][2] = 900, 5_000, "astronaut"
    rows["gains"][3], rows["age"][4], rows["job"][5] = 1e8, np.nan, None
    rows["day"][6] = np.datetime64("2035-06-01T12:30", "us")
    return rows, [
        ("age", "out_of_range", 900),
        ("hours", "out_of_range", 5_000),
        ("job", "unseen_level", "astronaut"),
        ("gains", "out_of_range", 100_000_000),
        ("age", "missing_unseen", None),
        ("job", "missing_unseen", None),
        ("day", "out_of_range", "2035-06-01T12:30:00Z"),
    ]


def reasons_of(prediction: RowPrediction) -> list[list[dict[str, object]]]:
    return [[reason.document() for reason in row] for row in prediction["reasons"]]


def test_strange_rows_are_flagged_by_column(
    passengers_model: TabularModel,
) -> None:
    rows, expected = strange(passengers_model.classes is not None)
    answer = passengers_model.predict(rows, OPTIONS)
    assert answer.out_of_distribution.all()
    first = [found[0] for found in reasons_of(answer)]
    assert [(one["column"], one["code"], one["value"]) for one in first] == expected


GAP_RATE = 0.01
Draw = Callable[[np.random.Generator, int], np.ndarray]


def with_hole(random: np.random.Generator, rows: int) -> np.ndarray:
    """Uniform on 0 to 4 and 6 to 10."""
    values = 8 * random.random(rows)
    return np.where(values < 4, values, values + 2)


COLUMNS: dict[str, Draw] = {
    "uniform": lambda r, n: r.random(n),
    "normal": lambda r, n: r.normal(size=n),
    "lognormal": lambda r, n: r.lognormal(0, 2, n),
    "Pareto": lambda r, n: r.pareto(0.5, n),
    "Cauchy": lambda r, n: r.standard_cauchy(n),
    "at both ends": lambda r, n: r.beta(0.3, 0.3, n),
    "seven decades": lambda r, n: 10 ** r.uniform(-3, 4, n),
    "counts": lambda r, n: r.negative_binomial(1, 0.005, n),
    "few counts": lambda r, n: r.poisson(4, n),
    "codes": lambda r, n: r.integers(0, 5, n),
    "uneven codes": lambda r, n: r.choice([1, 2, 5, 10, 20, 50, 100, 200], n),
    "prices": lambda r, n: np.round(r.lognormal(3, 0.8, n)) + r.choice([0.49, 0.95, 0.99], n),
    "rounded": lambda r, n: np.round(r.lognormal(8, 1, n), -2),
    "mostly 0": lambda r, n: np.where(r.random(n) < 0.6, 0, r.lognormal(5, 1, n)),
    "a few far away": lambda r, n: np.where(r.random(n) < 0.01, 1000, 1) * r.random(n),
    "two overlapping groups": lambda r, n: r.choice([-3, 3], n) + r.normal(size=n),
    "clusters": lambda r, n: 10 * r.integers(0, 20, n) + 0.3 * r.normal(size=n),
    "clusters of clusters": lambda r, n: (
        100 * r.integers(0, 5, n) + 10 * r.integers(0, 5, n) + 0.5 * r.random(n)
    ),
}


@pytest.mark.parametrize("rows", [100, 400, 2_000])
@pytest.mark.parametrize("name", COLUMNS)
def test_new_values_are_rarely_in_a_gap(name: str, rows: int) -> None:
    """Columns without clusters have no gap: 20 tables of each, so that a rate of 1 % has some."""
    inside, gaps = [], 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        found = find_gaps(COLUMNS[name](random, rows).astype(float), GAP_RATE)
        new = COLUMNS[name](random, 2_000).astype(float)
        depth = np.max([gap.depth(new) for gap in found], axis=0) if found else np.zeros(len(new))
        inside.append(np.mean(depth > 0))
        gaps += len(found)
    assert np.mean(inside) <= GAP_RATE
    if "clusters" not in name and "groups" not in name:
        assert gaps <= 1


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("decimals", [2, 12])
def test_a_hole_is_found_in_every_unit(unit: float, decimals: int) -> None:
    values = unit * np.round(with_hole(np.random.default_rng(0), 400), decimals)
    (gap,) = find_gaps(np.append(values, np.nan), GAP_RATE)
    assert gap.lowest == values[values < 5 * unit].max()
    assert gap.highest == values[values > 5 * unit].min()
    depth = gap.depth(unit * np.array([3.0, gap.lowest / unit + 0.001, 4.5, 5.0, 7.0, np.nan]))
    assert (depth > 0).tolist() == [False, False, True, True, False, False]
    assert depth[3] == pytest.approx(1, abs=0.05)


@pytest.fixture(scope="module")
def holed_model() -> TabularModel:
    random = np.random.default_rng(1)
    width, weight = with_hole(random, 400), random.normal(size=400)
    columns = {"width": width, "weight": weight, "y": width + weight}
    training = TrainingConfig(epochs=4, fine_tune_epochs=1, background=0)
    return trained(columns, network=MLPConfig(hidden=(8,)), training=training, pruning=())


def rows(width: list[float]) -> Columns:
    return {"width": np.array(width), "weight": np.zeros(len(width))}


def test_a_row_in_a_hole_is_flagged_and_says_where_the_hole_is(holed_model: TabularModel) -> None:
    answer = holed_model.predict(rows([2.0, 5.0, 8.0, 4.6]), PredictOptions(samples=8))
    assert answer.out_of_distribution.tolist() == [False, True, False, True]
    (reason,) = answer["reasons"][1]
    found = reason.document()
    assert (found["column"], found["code"], found["value"]) == ("width", "gap", 5)
    low, high = found["seen"]["lowest"], found["seen"]["highest"]
    assert 3.8 < low < 4
    assert 6 < high < 6.2
    assert found["text"] == f"width is 5; training saw nothing between {low:.6g} and {high:.6g}"


def test_versions_that_know_no_gaps_still_predict(holed_model: TabularModel) -> None:
    seen = holed_model.encoder.seen
    assert seen is not None
    older = SeenColumns(tuple(replace(one, gaps=()) for one in seen.columns))
    before = replace(holed_model, encoder=replace(holed_model.encoder, seen=older))
    answer = before.predict(rows([2.0, 5.0]), PredictOptions(samples=8))
    assert answer.out_of_distribution.tolist() == [False, False]
