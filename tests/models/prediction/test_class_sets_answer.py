"""Sets of classes as an answer: the same in JSON, tables and tensors, for any cut of the rows."""

import numpy as np
import torch

from core.predictions.prediction_table import _column
from models.evaluation.calibration import ClassCalibration
from models.evaluation.class_sets import Penalty, SetCalibration
from models.prediction.answers import class_sets
from models.prediction.answers.class_sets import ClassSets
from models.prediction.options import PredictOptions, ResolvedOptions
from models.prediction.predictive import CategoricalMixture

PROBABILITIES = torch.tensor([[0.55, 0.35, 0.1], [0.1, 0.05, 0.85], [0.3, 0.4, 0.3]]).double()
NAMES = ("ash", "elm", "oak")
CALIBRATION = ClassCalibration(1.0, 9, SetCalibration(tuple(i / 10 for i in range(9)), 9))


def _answer(calibration: ClassCalibration | None, **options: object) -> ClassSets:
    asked = PredictOptions(set_level=0.65, **options)  # type: ignore[arg-type]
    mixture = CategoricalMixture(PROBABILITIES.log().unsqueeze(0))
    arrays = class_sets.of_mixture(mixture, asked, calibration)
    whole = ResolvedOptions.of(asked, seed=0, sampler="moments", top=1, horizon=1)
    return class_sets.answer({k: v.numpy() for k, v in arrays.items()}, whole, NAMES)


def test_sets_are_the_most_probable_classes_up_to_the_level_and_the_threshold() -> None:
    """The 7th of 9 scores is 0.6, before which come two classes of the first and third row."""
    answer = _answer(CALIBRATION)
    assert answer.document() == [
        {"level": 0.65, "kind": "credible", "classes": [["ash", "elm"], ["oak"], ["elm", "ash"]]},
        {"level": 0.65, "kind": "conformal", "classes": [["ash", "elm"], ["oak"], ["elm", "ash"]]},
    ]
    strict = ClassCalibration(1.0, 9, SetCalibration((0.0,) * 9, 9, (), Penalty(0.1, 1)))
    assert _answer(strict).document()[1]["classes"] == [["ash"], ["oak"], ["elm"]]
    few = ClassCalibration(1.0, 1, SetCalibration((0.0,), 1))
    assert [len(row) for row in _answer(few).document()[1]["classes"]] == [3, 3, 3]


def test_tables_and_tensors_have_the_same_sets() -> None:
    answer = _answer(CALIBRATION)
    columns, tensors = answer.columns(), answer.tensors()
    assert list(columns) == ["set_0.65", "conformal_set_0.65"]
    assert list(tensors) == ["set", "conformal_set"]
    for document, lists, members in zip(
        answer.document(), columns.values(), tensors.values(), strict=True
    ):
        written = _column("set", lists, NAMES)
        assert str(written.type) == "list<item: string>"
        assert written.to_pylist() == document["classes"]
        found = [sorted(np.array(NAMES)[row]) for row in members]
        assert found == [sorted(row) for row in document["classes"]]
