"""The information of labels about the weights: closed forms of a linear model, brute force."""

import numpy as np

from models.evaluation import acquisition

NUM_DRAWS = 4000


def _linear(num_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows x, weight draws w ~ N(0, 1)², predicted means x·w."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_rows, 2)) * [1.0, 3.0]
    w = rng.normal(size=(NUM_DRAWS, 2))
    return x, w, w @ x.T


def test_the_information_of_a_linear_models_labels_is_the_closed_form() -> None:
    """I(y_B; w) = ½ log det(1 + X Xᵀ ÷ σ²); covariances of 4,000 draws err by a few percent."""
    x, _, draws = _linear(12)
    noise = 0.5
    z = acquisition.of_numbers(draws, np.full(12, noise))
    alone = 0.5 * np.log1p((x**2).sum(1) / noise)
    np.testing.assert_allclose(acquisition.information(z).numpy(), alone, rtol=0.03)
    chosen = acquisition.choose(z, 5)
    some = x[chosen.rows]
    together = 0.5 * np.linalg.slogdet(np.eye(5) + some @ some.T / noise)[1]
    np.testing.assert_allclose(sum(chosen.gains), together, rtol=0.03)


def test_a_row_that_is_there_twice_is_chosen_once() -> None:
    """Alone both copies tell most; once one is known, the other tells less than a new row."""
    draws = np.random.default_rng(0).normal(size=(500, 2)) @ np.array(
        [[3.0, 3.0, 0.0], [0, 0, 2.0]]
    )
    z = acquisition.of_numbers(draws, np.ones(3))
    assert set(acquisition.choose_alone(acquisition.information(z).numpy(), 2).rows) == {0, 1}
    assert acquisition.choose(z, 2).rows == [0, 2]
