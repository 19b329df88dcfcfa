"""Effects of levels: the posterior of the random-effects model, and what a model gains by them."""

import numpy as np
import pytest

from models.features.categories import (
    CategoryEncoder,
    LevelEffects,
    codes_of,
    places_of,
)

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
