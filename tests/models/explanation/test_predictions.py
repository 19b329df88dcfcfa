"""Explanations of trained models: what adds up, what they compare with, and what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from models.artifact.files import BACKGROUND, examine_artifact, write_model
from models.exceptions import InvalidInput
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from tests.models.explanation.fitting import Columns, fit, table


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
