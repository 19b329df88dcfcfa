"""After a fit that held-out rows ended early, the chosen prior must not be fitted to for long."""

import math

import numpy as np
import pytest

from models.config import LaplaceConfig, MLPConfig, TrainingConfig
from models.training.progress import Progress
from models.training.train import train
from tests.models.training.fitting import resolved, types_of


@pytest.mark.parametrize("sigma", ["auto", 0.5])
def test_the_fit_goes_on_for_a_quarter_of_the_epochs_that_it_took(sigma: float | str) -> None:
    """Noise alone is overfitted from the first epochs on: the best one comes early."""
    random = np.random.default_rng(0)
    columns = {name: random.normal(size=80) for name in ("a", "b", "c", "y")}
    config = resolved(
        columns,
        method=LaplaceConfig(kind="laplace", prior_sigma=sigma),  # type: ignore[arg-type]
        network=MLPConfig(hidden=(20,)),
        training=TrainingConfig(
            epochs=100, learning_rate=0.03, stopping_fraction=0.3, background=0
        ),
    )
    seen: list[Progress] = []
    model = train(columns, types_of(columns), config, on_progress=seen.append)
    scores = [epoch["held_out_log_likelihood"] for epoch in model.history]
    best = 1 + int(np.argmax(scores))
    assert best < 60
    stages = {progress.stage: progress.epochs for progress in seen}
    epochs = math.ceil(best / 4) if sigma == "auto" else None
    assert stages.get("refit-laplace") == epochs
    assert sigma != "auto" or seen[-1].fraction == pytest.approx(1.0)
    assert model.variant(0.0).metrics["prior_sigma"]["dense1"] > 0
