"""An output that is declared once is in every format: one declaration and one function."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import torch
from torch import Tensor

from app.serving.inference_protocol import outputs as tensors
from core.predictions.document import to_document
from core.predictions.prediction_table import to_table
from models.evaluation.calibration import Calibration
from models.evaluation.detector import Detector
from models.likelihoods.class_mixture import Mixture
from models.likelihoods.number_mixture import NumberMixture
from models.prediction.declared_outputs import LEVEL, NUMBERS, Output
from models.prediction.options import BatchOptions, PredictOptions, ResolvedOptions
from models.prediction.outputs import questions
from models.prediction.outputs.question import Question
from models.prediction.prediction import RowPrediction, summarise, to_prediction

RANGE = Output("half_range", "target", NUMBERS)
WIDTHS = Output("width", "target", NUMBERS, "width", along=LEVEL, records="widths")


def half_range(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    assert isinstance(mixture, NumberMixture)
    ends = mixture.quantiles([*(0.5 * (1 + p) for p in options.intervals), 0.5, 0.75])
    return {"half_range": ends[-1] - ends[-2], "width": 2 * (ends[:-2] - ends[-2]).T}


@pytest.fixture
def prediction(monkeypatch: pytest.MonkeyPatch) -> RowPrediction:
    """Of two rows N(0, 1) and N(1, 4), with the outputs that nothing else knows."""
    made_up = Question("intervals", NUMBERS, (RANGE, WIDTHS), half_range)
    monkeypatch.setattr(questions, "QUESTIONS", (*questions.QUESTIONS, made_up))
    options = PredictOptions(intervals=(0.5, 0.9), sampler="monte_carlo")
    means, noise = torch.tensor([[0.0, 1.0]]).double(), torch.tensor([[1.0, 4.0]]).double()
    found = summarise(NumberMixture.gaussian(means, noise), options, "epistemic_variance")
    whole = ResolvedOptions.of(options, seed=0, sampler="monte_carlo", top=1, horizon=1)
    detector = Detector("epistemic_variance", 1.0)
    return to_prediction(found, whole, detector, "regression", None)


def test_json_arrow_parquet_csv_and_tensors_have_it(prediction: RowPrediction) -> None:
    ranges, widths = [0.6745, 1.349], {0.5: [1.349, 2.698], 0.9: [3.2897, 6.5794]}
    document = to_document(prediction)
    np.testing.assert_allclose(document["half_range"], ranges, atol=1e-3)
    assert [one["level"] for one in document["widths"]] == list(widths)
    for one in document["widths"]:
        np.testing.assert_allclose(one["width"], widths[one["level"]], atol=1e-3)

    table, parquet, text = to_table(prediction), io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet)
    pc.write_csv(table, text)
    for each in (table, pq.read_table(parquet), pc.read_csv(io.BytesIO(text.getvalue()))):
        assert isinstance(each, pa.Table)
        np.testing.assert_allclose(each["half_range"].to_pylist(), ranges, atol=1e-3)
        for level, values in widths.items():
            np.testing.assert_allclose(each[f"width_{level}"].to_pylist(), values, atol=1e-3)

    found = tensors.select(prediction, ["half_range", "width"])
    np.testing.assert_allclose(found["half_range"], ranges, atol=1e-3)
    assert found["width"].shape == (2, 2)
    assert tensors.outputs(None)["half_range"].shape == (-1,)
    assert "half_range" not in tensors.outputs(2)


def test_requests_that_share_a_batch_take_their_rows_of_it(prediction: RowPrediction) -> None:
    one = prediction.select(1, 2, PredictOptions(intervals=(0.9,)))
    assert one["half_range"].shape == (1,)
    assert one["width"].shape == (1, 1)
    both = RowPrediction.joined([prediction, prediction])
    assert both["half_range"].shape == (4,)
