"""Sets of classes as an answer: the same in JSON, tables and tensors."""

import numpy as np
import torch

from app.serving.inference_protocol.outputs import select
from core.predictions.document import to_document
from core.predictions.prediction_table import to_table
from models.evaluation.calibration import ClassCalibration
from models.evaluation.class_sets import Penalty, SetCalibration
from models.evaluation.detector import Detector
from models.prediction.options import PredictOptions, ResolvedOptions
from models.prediction.prediction import RowPrediction, summarise, to_prediction
from models.prediction.predictive import CategoricalMixture

PROBABILITIES = torch.tensor([[0.55, 0.35, 0.1], [0.1, 0.05, 0.85], [0.3, 0.4, 0.3]]).double()
NAMES = ("ash", "elm", "oak")
CALIBRATION = ClassCalibration(1.0, 9, SetCalibration(tuple(i / 10 for i in range(9)), 9))


def _answer(calibration: ClassCalibration | None) -> RowPrediction:
    asked = PredictOptions(set_level=0.65)
    mixture = CategoricalMixture(PROBABILITIES.log().unsqueeze(0))
    found = summarise(mixture, asked, "total_entropy", calibration)
    whole = ResolvedOptions.of(asked, seed=0, sampler="monte_carlo", top=1, horizon=1)
    return to_prediction(found, whole, Detector("total_entropy", 1.0), "classification", NAMES)


def test_sets_are_the_most_probable_classes_up_to_the_level_and_the_threshold() -> None:
    """The 7th of 9 scores is 0.6, before which come two classes of the first and third row."""
    assert to_document(_answer(CALIBRATION))["sets"] == [
        {"level": 0.65, "kind": "credible", "classes": [["ash", "elm"], ["oak"], ["elm", "ash"]]},
        {"level": 0.65, "kind": "conformal", "classes": [["ash", "elm"], ["oak"], ["elm", "ash"]]},
    ]
    strict = ClassCalibration(1.0, 9, SetCalibration((0.0,) * 9, 9, (), Penalty(0.1, 1)))
    assert _answer(strict)["conformal_set"] == [["ash"], ["oak"], ["elm"]]
    few = ClassCalibration(1.0, 1, SetCalibration((0.0,), 1))
    assert [len(row) for row in _answer(few)["conformal_set"]] == [3, 3, 3]


def test_tables_and_tensors_have_the_same_sets() -> None:
    answer = _answer(CALIBRATION)
    table = to_table(answer).select(["set_0.65", "conformal_set_0.65"])
    tensors = select(answer, ["set", "conformal_set"])
    for document, lists, members in zip(
        to_document(answer)["sets"], table.columns, tensors.values(), strict=True
    ):
        assert str(lists.type) == "list<item: string>"
        assert lists.to_pylist() == document["classes"]
        found = [sorted(np.array(NAMES)[row]) for row in members]
        assert found == [sorted(row) for row in document["classes"]]
