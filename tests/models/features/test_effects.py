"""Effects of levels: the posterior of the random-effects model, and what a model gains by them."""

import json
from dataclasses import asdict

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter
from scipy.stats import norm, rankdata

from models.artifact.torch_encoders import encode_column
from models.config import FeatureConfig
from models.features.categories import MAX_LEVELS, CategoryEncoder
from models.features.effects import LevelEffects, codes_of, places_of, target_scores
from models.features.encoders import Encoder
from models.features.feature_encoder import FeatureEncoder

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


def test_the_ratio_of_variances_is_recovered() -> None:
    """9,000 rows of 3,000 levels give σ²/τ² = 1 with a standard error of some 5 %."""
    values, targets, _ = shops(9_000, seed=1)
    fitted = LevelEffects.fit(sorted(set(values)), values, standardised(targets))
    assert fitted.noise_ratio[0] == pytest.approx(1.0, abs=0.15)


def test_a_rows_own_fold_is_left_out_of_its_effect() -> None:
    values, targets, _ = shops(2_000, seed=2)
    outputs, folds = standardised(targets), np.arange(2_000) % 4
    levels = sorted(set(values))
    fitted = LevelEffects.fit(levels, values, outputs)
    found = fitted.encode_learned(codes_of(places_of(levels), values), outputs, folds)
    changed = outputs + 100.0 * (folds == 1)[:, None]
    again = fitted.encode_learned(codes_of(places_of(levels), values), changed, folds)
    same = np.isclose(found, again).all(1)
    assert same[folds == 1].all()
    assert same[(folds != 1) & (found[:, -1] > 0)].mean() < 0.05  # the others moved with the mean
    rest = folds != 1
    mean = outputs[rest].mean()
    row = int(np.flatnonzero(folds == 1)[0])
    own = outputs[rest & (values == values[row]), 0]
    expected = (own - mean).sum() / (len(own) + fitted.noise_ratio[0])
    assert found[row, 0] == pytest.approx(expected)


def fit(values: np.ndarray, targets: np.ndarray | None) -> FeatureEncoder:
    feature = FeatureConfig(name="shop", type="category")
    columns = {"shop": values}
    return FeatureEncoder.fit(
        [feature], {"shop": "category"}, columns, pieces=True, targets=targets
    )


def test_effects_beat_pooling_and_unseen_levels_are_less_certain() -> None:
    """Exact Bayesian linear regression on either encoding, with weights from N(0, 1).

    Rare levels explain nothing when they are pooled. With effects the error comes near to that of
    the best predictor of this table, the posterior mean under the true variances.
    """
    values, targets, _ = shops(15_000, seed=3)
    new, _, truth = shops(5_000, seed=4)
    outputs, folds = standardised(targets), np.random.default_rng(0).integers(0, 8, 15_000)
    encoder, pooled = fit(values, outputs), fit(values, None)
    learned = encoder.expand(encoder.encode_learned({"shop": values}, outputs, folds))
    weights, covariance = posterior(learned, outputs)
    fresh = encoder.expand(encoder.encode({"shop": new})).double()
    errors = {"effects": rmse(fresh @ weights, targets, truth)}
    plain = pooled.expand(pooled.encode({"shop": values}))
    alone, _ = posterior(plain, outputs)
    expanded = pooled.expand(pooled.encode({"shop": new})).double()
    errors["pooled"] = rmse(expanded @ alone, targets, truth)
    errors["best"] = rmse(torch.from_numpy(best(values, targets, new)), targets, truth)
    assert errors["effects"] < 0.6 * errors["pooled"]
    assert errors["effects"] < 1.1 * errors["best"]

    unseen = encoder.expand(encoder.encode({"shop": np.array(["new shop"], object)})).double()
    known = fresh[torch.from_numpy(np.isin(new, values))]
    one, others = ((x @ covariance * x).sum(1) for x in (unseen, known))
    assert one.item() > 10 * others.max().item()


def posterior(x: torch.Tensor, y: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and covariance of the weights under unit priors and noise variance ½."""
    x = x.double()
    covariance = torch.linalg.inv(x.T @ x / 0.5 + torch.eye(x.shape[1], dtype=torch.float64))
    return covariance @ x.T @ torch.from_numpy(y[:, 0]) / 0.5, covariance


def rmse(predicted: torch.Tensor, targets: np.ndarray, truth: np.ndarray) -> float:
    in_units = predicted.numpy() * targets.std() + targets.mean()
    return float(np.sqrt(np.square(in_units - truth).mean()))


def best(values: np.ndarray, targets: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Posterior means with the true variances, both 1; unseen levels are at the mean."""
    levels, codes = np.unique(values.astype(str), return_inverse=True)
    sums = np.bincount(codes, targets - targets.mean())
    means = dict(zip(levels, sums / (np.bincount(codes) + NOISE**2), strict=True))
    return np.array([means.get(level, 0.0) for level in new]) / targets.std()


def test_slots_of_frequent_rare_missing_and_unseen_levels() -> None:
    values, targets, _ = shops(15_000, seed=5)
    values[::100] = None
    encoder = CategoryEncoder.fit_effects(values, standardised(targets))
    assert len(encoder.levels) == MAX_LEVELS
    assert encoder.num_slots == MAX_LEVELS + 3
    rare = encoder.known_levels[-1]
    asked = np.array([encoder.levels[7], rare, None, "new"], dtype=object)
    found = encoder.encode(asked)
    assert found[:, -1].tolist() == [7, MAX_LEVELS + 1, MAX_LEVELS, MAX_LEVELS + 2]
    assert (found[2:, :-1] == 0).all()
    again = TypeAdapter(Encoder).validate_python(json.loads(json.dumps(asdict(encoder))))
    assert again == encoder
    places = codes_of(places_of(encoder.known_levels), asked).astype(float)
    places[2] = np.nan
    exported = encode_column(encoder, torch.from_numpy(places))
    np.testing.assert_allclose(exported.numpy(), found, atol=1e-6)


def test_identifiers_have_no_effects() -> None:
    """One row per level: the effect would be the row's own target."""
    values = np.array([f"id {i}" for i in range(1_000)], dtype=object)
    encoder = CategoryEncoder.fit_effects(values, np.random.default_rng(0).normal(size=(1_000, 1)))
    assert encoder.form.width == 0


def test_few_levels_have_slots_alone() -> None:
    values = np.array(list("abcdefghijklmnop") * 10, dtype=object)
    assert CategoryEncoder.fit_effects(values, np.ones((160, 1))).effects is None


def test_target_scores_have_mean_0_and_variance_1() -> None:
    random = np.random.default_rng(0)
    numbers = target_scores(random.standard_t(1, 200), classes=False)
    assert numbers.shape == (200, 1)
    assert abs(numbers).max() < 3  # a Cauchy target's largest value is hundreds of deviations out
    three = target_scores(random.integers(0, 3, 300), classes=True)
    two = target_scores(np.array([0, 1, 1, 0, 1]), classes=True)
    assert (three.shape[1], two.shape[1]) == (3, 1)
    for outputs in (numbers, three, two):
        np.testing.assert_allclose(outputs.mean(0), 0, atol=1e-12)
        np.testing.assert_allclose(outputs.std(0), 1)


def test_numbers_score_by_rank() -> None:
    values = np.random.default_rng(0).exponential(size=200)
    scores = norm.ppf((rankdata(values) - 0.5) / 200)
    np.testing.assert_allclose(target_scores(values, classes=False)[:, 0], scores / scores.std())
