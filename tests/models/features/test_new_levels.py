"""Rows with a level that no training row had: told apart from rare ones, and flagged."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.config import (
    DropoutConfig,
    FeatureConfig,
    MAPConfig,
    MLPConfig,
    ModelConfig,
    SWAGConfig,
    TrainingConfig,
)
from models.config.methods import BBBConfig
from models.evaluation.out_of_distribution import Detector
from models.exceptions import InvalidData
from models.features.categories import CategoryEncoder
from models.features.columns import ColumnProfile
from models.features.feature_encoder import FeatureEncoder
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

CITIES = np.array(["Bern", "Oslo", "Rome"], object)
TYPES = {"city": "category", "x": "number"}


def table(rows: int, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    city, x = random.integers(0, 3, rows), random.normal(size=rows)
    return {"city": CITIES[city], "x": x, "y": city + x + 0.3 * random.normal(size=rows)}


def objects(*values: str | None) -> np.ndarray:
    return np.array(values, dtype=object)


def fit(columns: dict[str, np.ndarray], **kwargs: bool) -> FeatureEncoder:
    features = [FeatureConfig(name=n, type=t) for n, t in TYPES.items()]  # type: ignore[arg-type]
    return FeatureEncoder.fit(features, TYPES, columns, rate=0.01, **kwargs)


@pytest.mark.parametrize("coded", [False, True])
def test_a_rare_level_is_not_new_and_a_missing_one_is_none(coded: bool) -> None:
    """The rare level shares a slot with new ones, so that its slot cannot tell."""
    values = objects(*["Oslo"] * 150, *["Rome"] * 100, "Bern", None)
    encoder = CategoryEncoder.fit(values, coded=coded).marking(values, 0.01)
    assert encoder.marked
    assert encoder.is_new(objects("Oslo", "Bern", None, "Paris")).tolist() == [False] * 3 + [True]


def test_a_constant_category_tells_new_levels() -> None:
    values = objects(*["Oslo"] * 200)
    encoder = CategoryEncoder.fit(values, coded=True).marking(values, 0.01)
    assert encoder.is_new(objects("Oslo", "Rome")).tolist() == [False, True]


@pytest.mark.parametrize(("alone", "marked"), [(2, True), (3, False)])
def test_levels_are_marked_only_where_new_ones_are_rare(alone: int, marked: bool) -> None:
    """Good's estimate: 2 of 200 rows with a level to themselves make 1 % of new levels."""
    values = objects(*["Oslo"] * (200 - alone), *(f"city {i}" for i in range(alone)))
    assert CategoryEncoder.fit(values).marking(values, 0.01).marked == marked


@pytest.mark.parametrize("pieces", [False, True])
def test_scores_are_no_inputs(pieces: bool) -> None:
    """With the same values, inputs are those of an encoder without scores."""
    columns = table(300, 0)
    marking = fit(columns, pieces=pieces)
    plain = FeatureEncoder.fit(marking.features, TYPES, columns, pieces=pieces)
    rows = {"city": objects("Oslo", "Paris", None), "x": np.array([0.0, 1.0, 2.0])}
    encoded = marking.encode(rows)
    torch.testing.assert_close(marking.expand(encoded), plain.expand(plain.encode(rows)))
    assert marking.column_score(encoded).tolist() == [0, 1, 1]  # none was missing in training
    assert not plain.column_score(plain.encode(rows)).any()


def test_an_encoder_of_an_earlier_release_tells_new_levels_alone() -> None:
    """It marks categories, and does not know what training saw in other columns."""
    earlier = replace(fit(table(300, 0)), seen=None)
    rows = {"city": objects("Oslo", "Paris", None), "x": np.array([1e6, 1.0, np.nan])}
    assert earlier.column_score(earlier.encode(rows)).tolist() == [0, 1, 0]
    with pytest.raises(InvalidData, match="does not know what its training rows had"):
        earlier.column_scores(rows)


def test_rows_that_are_flagged_anyway_count_as_false_alarms() -> None:
    """10 of 199 usual rows: the rate of the largest other score is 11 of 200."""
    scores = np.concatenate([np.full(10, np.inf), np.arange(189.0)])
    detector = Detector.fit("total_variance", scores, 0.01)
    assert (detector.threshold, detector.false_alarm_rate) == (188.0, 11 / 200)


def test_a_few_such_rows_leave_the_rate_as_it_was() -> None:
    """Of 999 usual rows the rate lets 9 be flagged: 4 anyway, and 5 above the bound."""
    scores = np.concatenate([np.full(4, np.inf), np.arange(995.0)])
    detector = Detector.fit("total_variance", scores, 0.01)
    assert detector.false_alarm_rate == 0.01
    assert (scores > detector.threshold).sum() == 9


@pytest.mark.training
@pytest.mark.parametrize(
    "method",
    [
        BBBConfig(),
        MAPConfig(kind="map"),
        DropoutConfig(kind="mc_dropout"),
        SWAGConfig(kind="swag", epochs=4),
    ],
    ids=lambda method: method.kind,
)
def test_a_new_level_is_flagged_by_every_method(method: object) -> None:
    """The epistemic variance of a new level is often below that of seen ones: it cannot tell.

    The bound is the largest of 60 held-out scores, so that the share of seen rows above it is
    Beta(1, 60): more than 12 % with a probability of 0.88⁶⁰ = 5e-4.
    """
    profiles = [
        ColumnProfile(name="city", type="category", levels=tuple(CITIES)),
        ColumnProfile(name="x", type="number"),
        ColumnProfile(name="y", type="number"),
    ]
    wanted = ModelConfig(
        target="y",
        method=method,  # type: ignore[arg-type]
        network=MLPConfig(hidden=(8,)),
        training=TrainingConfig(epochs=5, fine_tune_epochs=1),
    )
    types = {profile.name: profile.type for profile in profiles}
    model = train(table(600, 0), types, resolve(wanted, profiles, 600))
    fresh = table(300, 1)
    unseen = fresh | {"city": objects(*["Paris"] * 300)}
    assert model.predict(unseen, PredictOptions(samples=8)).out_of_distribution.all()
    assert model.predict(fresh, PredictOptions(samples=8)).out_of_distribution.mean() < 0.12
