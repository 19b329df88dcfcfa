"""Compact rows are expanded in training and in prediction, whatever the chunks."""

from dataclasses import replace

import pytest
import torch

from models.config import MLPConfig
from models.features.expansion import Expansion, Form
from models.features.rows import Rows
from models.features.targets import NumberTarget
from models.inference.bbb import BBBState
from models.likelihoods import HeteroscedasticGaussian
from models.networks import MLP
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.engine import Engine
from models.prediction.fitted import Fitted
from models.prediction.whole_draws import FittedDraws
from models.training.row_task import RowTask
from tests.models.features.test_encoders import fit, inputs, table

ENCODER = fit(table())
COMPACT = ENCODER.encode(table(seed=1))
NETWORK = MLP.build(MLPConfig(hidden=(7,)), ENCODER.width, 2)


def state() -> BBBState:
    loc = NETWORK.layout.flatten(NETWORK.init(torch.Generator().manual_seed(0)))
    return BBBState(MeanFieldNormal(loc, torch.full_like(loc, -4.0)), {})


@pytest.mark.parametrize("kind", ["units", "weights"])
def test_the_engine_expands_chunk_by_chunk(kind: str) -> None:
    fitted = (Fitted if kind == "units" else FittedDraws).of(NETWORK, state())
    whole = Engine(NETWORK, HeteroscedasticGaussian(), NumberTarget(0.0, 1.0))
    small = replace(whole, expand=ENCODER.expand, memory_bytes=2**16)
    expected, _ = whole.outputs(fitted, inputs(ENCODER, table(seed=1)), 3, 20)
    found, _ = small.outputs(fitted, COMPACT, 3, 20)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_a_task_expands_its_mini_batches() -> None:
    task = RowTask(Rows(COMPACT, torch.zeros(len(COMPACT))), expand=ENCODER.expand)
    batch = torch.tensor([5, 0, 17])
    expected = inputs(ENCODER, table(seed=1))[batch]
    torch.testing.assert_close(task.take(batch).inputs, expected, rtol=0, atol=0)


def test_codes_become_slots_and_positions_pieces() -> None:
    plain = Form(plain=1, slots=(2,))
    expand = Expansion.of([plain, replace(plain, slots=(3,))])
    compact = torch.tensor([[0.5, 1.0, 0.25, 2.0]])
    assert expand(compact).tolist() == [[0.5, 0.25, 0, 1, 0, 0, 1]]
