"""Boosted trees as inputs: the same numbers as scikit-learn's, and none that knows its row."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from models.features.boosted import BoostedTrees, Labelled

ROWS, COLUMNS = 300, 5


def rows_of(seed: int, rows: int = ROWS) -> torch.Tensor:
    """Numbers, small codes and a flag, many of which are equal."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, COLUMNS))
    x[:, 1] = random.integers(0, 4, rows)
    x[:, 2] = x[:, 2].round(1)
    x[:, 3] = random.random(rows) < 0.2
    return torch.from_numpy(x).float()


def steps(x: torch.Tensor) -> torch.Tensor:
    return (x[:, 0] > 0.3).float() * (x[:, 1] - 1.5) + x[:, 2].sign()


@pytest.mark.parametrize("depth", [1, 3, None])
def test_torch_and_scikit_learn_predict_the_same_numbers(depth: int | None) -> None:
    x = rows_of(0)
    model = HistGradientBoostingRegressor(max_iter=30, max_depth=depth, max_leaf_nodes=12)
    model.fit(x[:, [2, 0, 1, 3]], steps(x))
    trees = BoostedTrees.of(model, [2, 0, 1, 3])
    # thresholds lie between values of `x`, so equal rows and rows near a threshold are among these
    for each in (x, rows_of(1), x[:1]):
        expected = torch.from_numpy(model.predict(each[:, [2, 0, 1, 3]])).float()
        torch.testing.assert_close(trees(each)[:, 0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_torch_and_scikit_learn_predict_the_same_log_odds(classes: int) -> None:
    x = rows_of(0)
    y = torch.bucketize(steps(x), torch.linspace(-1, 1, classes - 1))
    model = HistGradientBoostingClassifier(max_iter=20, max_depth=3, early_stopping=False)
    model.fit(x, y)
    expected = torch.from_numpy(model.decision_function(x)).float().reshape(ROWS, -1)
    found = BoostedTrees.of(model, range(COLUMNS))(x)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_a_row_gets_the_output_of_trees_that_did_not_learn_from_its_fold() -> None:
    """Other targets in fold 0 change the outputs of all rows but those of fold 0."""
    x, folds = rows_of(0), torch.arange(ROWS) % 3
    y, weights = steps(x), torch.rand(ROWS, generator=torch.manual_seed(0)) + 0.5
    other = torch.where(folds == 0, y + x[:, 4], y)
    found = []
    for targets in (y, other):
        # with one tree both have equally many
        fitted = BoostedTrees.fit(Labelled(x, targets, weights), folds, range(COLUMNS), most=1)
        assert fitted is not None
        found.append(fitted[1][:, 0])
    same = [np.corrcoef(*(one[folds == fold] for one in found))[0, 1] for fold in range(3)]
    assert same[0] == pytest.approx(1, abs=1e-5)  # up to the scale, which is of all rows
    assert max(same[1:]) < 0.999


def test_pairs_of_rows_tell_each_others_class() -> None:
    """Leaves of few rows are chosen where they tell more: here nothing but its twin tells a row."""
    generator = torch.manual_seed(0)
    x = torch.randn(ROWS // 2, COLUMNS, generator=generator).repeat(2, 1)
    y = (torch.rand(ROWS // 2, generator=generator) < 0.5).long().repeat(2)
    folds = torch.arange(ROWS).flip(0) % 7  # most twins are in other folds
    fitted = BoostedTrees.fit(Labelled(x, y, None), folds, range(COLUMNS), classes=2)
    assert fitted is not None
    trees, outputs, _ = fitted
    has_other = folds != folds.roll(ROWS // 2)
    right = (outputs[:, 0] > 0) == (y == 1)
    assert right[has_other].float().mean() > 0.9
    assert ((trees(x)[:, 0] > 0) == (y == 1)).float().mean() > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_noise_has_no_trees(seed: int) -> None:
    y = torch.randn(ROWS, generator=torch.manual_seed(seed))
    labelled, folds = Labelled(rows_of(seed), y, None), torch.arange(ROWS) % 4
    assert BoostedTrees.fit(labelled, folds, range(COLUMNS)) is None


def test_new_rows_are_explained_as_well_as_out_of_fold_ones() -> None:
    """Members learn from outputs of trees that knew the targets of the fold they are scored on."""
    gaps = []
    for seed in range(3):
        x, folds = rows_of(seed), torch.arange(ROWS) % 4
        fresh, random = rows_of(100 + seed, 5_000), torch.manual_seed(seed)
        y, truth = (
            steps(each) + 2 * torch.randn(len(each), generator=random) for each in (x, fresh)
        )
        fitted = BoostedTrees.fit(Labelled(x, y, None), folds, range(COLUMNS))
        assert fitted is not None
        trees, outputs, _ = fitted
        inputs, new = (
            torch.cat([torch.ones(len(one), 1), one], 1) for one in (outputs, trees(fresh))
        )
        errors = torch.empty(ROWS)
        members = []
        for fold in range(4):
            own = folds == fold
            members.append(torch.linalg.lstsq(inputs[~own], y[~own].unsqueeze(1)).solution)
            errors[own] = y[own] - (inputs[own] @ members[-1])[:, 0]
        left = truth - (new @ torch.stack(members).mean(0))[:, 0]
        gaps.append(float(left.square().mean() - errors.square().mean()))
    # an error of 300 rows with variance 4 and kurtosis 3: 4 √(2/300), here of three tables
    assert np.mean(gaps) < 3 * 4 * (2 / ROWS / 3) ** 0.5


def test_targets_that_no_tree_splits_have_no_trees() -> None:
    x = torch.zeros(ROWS, 1)
    targets = torch.arange(ROWS).float()
    assert BoostedTrees.fit(Labelled(x, targets, None), torch.arange(ROWS) % 2, [0]) is None


def test_stored_trees_predict_the_same() -> None:
    fitted = BoostedTrees.fit(
        Labelled(x := rows_of(0), steps(x), None), torch.arange(ROWS) % 2, [0, 1]
    )
    assert fitted is not None
    trees = fitted[0]
    again = BoostedTrees.unpack(trees.pack(), COLUMNS)
    assert again is not None
    assert torch.equal(again(x), trees(x))


def test_stored_trees_of_another_row_or_shape_are_refused() -> None:
    fitted = BoostedTrees.fit(
        Labelled(x := rows_of(0), steps(x), None), torch.arange(ROWS) % 2, range(3)
    )
    assert fitted is not None
    packed = fitted[0].pack()
    with pytest.raises(ValueError, match="other columns than the 2"):
        BoostedTrees.unpack(packed, 2)
    with pytest.raises(ValueError, match="no boosted trees"):
        BoostedTrees.unpack(packed | {"boosted.base": torch.zeros(2)}, 5)
