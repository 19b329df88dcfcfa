"""Shapley values, contributions and importance, beside enumeration and closed forms."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from models.artifact.files import BACKGROUND, examine_artifact, write_model
from models.config import MLPConfig, TrainingConfig
from models.exceptions import InvalidInput
from models.explanation.explainer import Explainer
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from models.tabular.importance import associate, measure_importance
from models.tabular.model import TabularModel
from tests.models.training.fitting import trained

Columns = dict[str, np.ndarray]
TRAINING = TrainingConfig(epochs=20, batch_size=64, learning_rate=0.02, fine_tune_epochs=0)


def table(rows: int = 400) -> Columns:
    """y rises with a and depends on the level; its noise grows with b; `constant` does nothing."""
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, rows))
    level = random.choice(np.array(["x", "y", "z"], object), rows)
    noise = np.exp(b) * random.normal(size=rows)
    y = 3 * a + 2 * (level == "x") + 0.3 * noise
    days = np.datetime64("2026-01-01") + random.integers(0, 300, rows).astype("timedelta64[D]")
    kind = np.where(y > 0, "high", "low").astype(object)
    constant = np.ones(rows)
    columns = {"a": a, "b": b, "level": level, "day": days.astype("datetime64[us]")}
    return columns | {"constant": constant, "y": y, "kind": kind}


def fit(target: str, **training: Any) -> TabularModel:
    other = {"y": "kind", "kind": "y"}[target]
    columns = {name: values for name, values in table().items() if name != other}
    return trained(
        columns,
        target=target,
        network=MLPConfig(hidden=(16,)),
        training=replace(TRAINING, **training),
        pruning=(0.5,),
    )


@pytest.fixture(scope="session")
def regression() -> TabularModel:
    return fit("y")


@pytest.fixture(scope="session")
def classifier() -> TabularModel:
    return fit("kind")


def tangled(x: Tensor) -> Tensor:
    """Two quantities with interactions of two and three columns."""
    a, b, c, d = x.double().T
    first = a * b + torch.sin(c) * d + a * c * d
    return torch.stack([first, (a + 2 * b).square() + c.abs() * d], -1)


def exact(f: Callable[[Tensor], Tensor], x: Tensor, background: Tensor) -> np.ndarray:
    """The Shapley values of one row by enumeration of all sets: features × quantities."""
    size = x.shape[0]

    def value(chosen: tuple[int, ...]) -> np.ndarray:
        mixed = background.clone()
        mixed[:, list(chosen)] = x[list(chosen)]
        return f(mixed).mean(0).numpy()

    found = []
    for j in range(size):
        others = [i for i in range(size) if i != j]
        sets = [s for n in range(size) for s in combinations(others, n)]
        gains = [(value((*s, j)) - value(s)) / (size * comb(size - 1, len(s))) for s in sets]
        found.append(np.sum(gains, axis=0))
    return np.stack(found)


def explainer(background: Tensor, feature_of: tuple[int, ...] | None = None) -> Explainer:
    columns = tuple(range(background.shape[1])) if feature_of is None else feature_of
    return Explainer(background, torch.tensor(columns), max(columns) + 1)


def rows(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))


def test_the_estimate_is_unbiased_for_the_values_by_enumeration() -> None:
    background, x = rows(16), rows(1, seed=1)
    one = explainer(background)
    found = [one.explain(x, tangled, tangled(x), seed)[0].values[0] for seed in range(300)]
    spread = torch.stack(found).std(0).numpy() / np.sqrt(len(found))
    difference = torch.stack(found).mean(0).numpy() - exact(tangled, x[0], background)
    np.testing.assert_array_less(np.abs(difference), 4 * spread + 1e-9)  # 8 values: 5e-4


def test_a_linear_function_has_its_closed_form() -> None:
    weights = torch.tensor([[1.0], [-2.0], [0.5], [0.0]], dtype=torch.float64)
    background, x = rows(64), rows(5, seed=1)

    def linear(x: Tensor) -> Tensor:
        return x.double() @ weights

    found, base = explainer(background).explain(x, linear, linear(x), 3)
    means = background.double().mean(0)
    expected = weights[:, 0] * (x.double() - means)
    np.testing.assert_allclose(found.values[..., 0].numpy(), expected.numpy(), atol=1e-12)
    np.testing.assert_allclose(base.numpy(), (means @ weights).numpy(), atol=1e-12)


def test_stated_errors_are_those_of_fresh_background_rows_and_orders() -> None:
    """z = (estimate − truth) ÷ stated error has a mean square of about 1 (t with 63 degrees)."""
    x, population = rows(1, seed=1), rows(20_000, seed=2)
    truth = exact(tangled, x[0], population)
    found = []
    for seed in range(300):
        background = rows(64, seed=1_000 + seed)
        one, _ = explainer(background).explain(x, tangled, tangled(x), seed)
        found.append((one.values[0].numpy() - truth) / one.errors[0].numpy())
    squares = np.square(found).mean(0)
    assert (squares > 0.7).all(), squares
    assert (squares < 1.4).all(), squares  # 1.03 ± 0.09 for each of 8 values; skew adds some
    assert (np.abs(found) < 1.96).mean() == pytest.approx(0.95, abs=0.02)


def test_columns_of_a_feature_move_together_and_further_columns_are_not_read() -> None:
    background, x = rows(32)[:, :3], rows(2, seed=1)
    seen: list[Tensor] = []

    def watched(mixed: Tensor) -> Tensor:
        seen.append(mixed)
        return mixed[:, :3].sum(1, keepdim=True).double()

    one = explainer(background, (0, 1, 1))
    found, _ = one.explain(x, watched, watched(x), 0)
    assert found.values.shape == (2, 2, 1)
    mixed = seen[-1]
    assert mixed.shape[1] == 3
    own = torch.stack([torch.isin(mixed[:, i], x[:, i]) for i in range(3)], 1)
    assert torch.equal(own[:, 1], own[:, 2])
    assert own[:, 0].any()


def some(rows: int = 5) -> Columns:
    return {name: values[:rows] for name, values in table().items()}


def explained(model: TabularModel, columns: Columns, **options: Any) -> RowPrediction:
    return model.predict(columns, PredictOptions(explain=True, samples=32, **options))


def of_mean(prediction: RowPrediction) -> np.ndarray:
    found: np.ndarray = prediction["mean_contribution"]
    return found


def test_base_and_contributions_add_up_to_mean_and_variances(regression: TabularModel) -> None:
    for options in ({}, {"prune": 0.5}, {"sampler": "moments"}, {"sampler": "monte_carlo"}):
        prediction = explained(regression, some(), **options)
        assert prediction.constants["features"] == ("a", "b", "level", "day", "constant")
        for part, value in (
            ("mean", prediction.mean),
            ("aleatoric", prediction.variance["aleatoric"]),
            ("epistemic", prediction.variance["epistemic"]),
        ):
            contributions = prediction[f"{part}_contribution"]
            total = prediction.constants["base"][part] + contributions.sum(1)
            np.testing.assert_allclose(total, value, rtol=1e-9, atol=1e-9)


def test_those_of_classes_add_up_to_probabilities_and_entropies(classifier: TabularModel) -> None:
    prediction = explained(classifier, some())
    mean, entropy, base = of_mean(prediction), prediction.entropy, prediction.constants["base"]
    assert entropy is not None
    assert mean.shape == (5, 5, 2)
    np.testing.assert_allclose(base["mean"] + mean.sum(1), prediction.mean, atol=1e-9)
    np.testing.assert_allclose(mean.sum(2), 0, atol=1e-9)  # what one class gains others lose
    for part in ("aleatoric", "epistemic"):
        total = base[part] + prediction[f"{part}_contribution"].sum(1)
        np.testing.assert_allclose(total, entropy[part], atol=1e-9)


@pytest.mark.parametrize("part", ["mean", "aleatoric", "epistemic"])
def test_errors_contain_that_of_finite_samples(classifier: TabularModel, part: str) -> None:
    """If the only background row differs in one feature, nothing but the weights is drawn.

    60 repetitions give their deviation to 9 %.
    """
    row = {name: values[:1] for name, values in table().items()}
    other = classifier.encode(row | {"a": row["a"] + 2})[:, : classifier.num_explained]
    one = replace(classifier, background=other.repeat(16, 1))
    runs = [explained(one, row, sampler="monte_carlo", seed=seed) for seed in range(60)]
    found = np.stack([run[f"{part}_contribution"].reshape(5, -1)[0, 0] for run in runs])
    stated = np.stack([run[f"{part}_contribution_error"].reshape(5, -1)[0, 0] for run in runs])
    assert found.std() == pytest.approx(np.sqrt(np.square(stated).mean()), rel=0.27)


def test_background_rows_are_stored_and_read_back(regression: TabularModel, tmp_path: Path) -> None:
    assert regression.background is not None
    assert len(regression.background) == 64
    write_model(regression, tmp_path)
    assert (tmp_path / BACKGROUND).stat().st_size < 2**18
    again = examine_artifact(tmp_path)
    assert again.background is not None
    torch.testing.assert_close(again.background, regression.background, rtol=0, atol=0)
    columns = some()
    expected = of_mean(explained(regression, columns))
    assert isinstance(again, TabularModel)
    np.testing.assert_allclose(of_mean(explained(again, columns)), expected, rtol=1e-5, atol=1e-5)


def test_a_model_without_background_rows_says_what_to_do() -> None:
    old = fit("y", epochs=1, background=0)
    assert old.background is None
    with pytest.raises(InvalidInput) as raised:
        explained(old, some())
    assert raised.value.path == "/explain"


def test_the_card_ranks_features_by_what_makes_the_target(regression: TabularModel) -> None:
    found = regression.card["importance"]
    assert found["rows"] == 32
    by_name = {one["name"]: one for one in found["features"]}
    assert found["features"][0]["name"] == "a"  # y = 3a + …
    assert max(by_name, key=lambda name: by_name[name]["aleatoric"]) == "b"  # noise exp(b)
    # E|3a| = 2.4 for a standard normal a: 32 rows give ± 0.3, the fit shrinks it a little
    assert by_name["a"]["mean"] == pytest.approx(2.4, abs=0.8)
    assert by_name["a"]["mean_error"] == pytest.approx(0.3, abs=0.15)
    assert by_name["constant"]["mean"] == 0
    assert regression.description["importance"] == found


def test_features_that_depend_on_each_other_are_named(regression: TabularModel) -> None:
    columns = table() | {"day": table()["a"]}
    held_out = regression.encode(table())
    found = measure_importance(regression, held_out, columns | {"level": _levels(columns["b"])})
    by_name = {one["name"]: one["correlated_with"] for one in found["features"]}
    assert [other["name"] for other in by_name["a"]] == ["day"]
    assert by_name["a"][0]["value"] == pytest.approx(1)
    assert [other["name"] for other in by_name["level"]] == ["b"]


def _levels(values: np.ndarray) -> np.ndarray:
    return np.array([f"{value:.0f}" for value in values], object)


def test_association_of_numbers_is_the_size_of_r() -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 500))
    mixed = -a + 0.5 * b
    assert associate(a, mixed) == pytest.approx(abs(np.corrcoef(a, mixed)[0, 1]))
    with_gaps = np.where(random.random(500) < 0.2, np.nan, mixed)
    known = ~np.isnan(with_gaps)
    assert associate(a, with_gaps) == pytest.approx(abs(np.corrcoef(a[known], mixed[known])[0, 1]))


def test_association_of_independent_categories_is_near_zero_and_of_copies_one() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(0, 20, (2, 300))
    assert associate(a, b) < 0.15  # Cramér's V without the correction: 0.25
    assert associate(a, (a + 3) % 20) == pytest.approx(1, abs=0.01)


def test_association_of_a_number_and_levels_is_the_adjusted_correlation_ratio() -> None:
    random = np.random.default_rng(0)
    codes = random.integers(0, 30, 300)
    noise = random.normal(size=300)
    assert associate(noise, codes) < 0.25  # η itself: 0.3
    shifted = codes * 10.0 + noise
    assert associate(codes, shifted) > 0.99
