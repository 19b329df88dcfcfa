"""What to expect of rows without labels: their scores, and what each label would tell."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeGuard

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.evaluation import acquisition
from models.evaluation.detector import SURPRISE
from models.exceptions import InvalidInput
from models.expected_scores.expectation import Promise
from models.expected_scores.simulation import Drawn, Simulated
from models.expected_scores.simulation import simulate as simulate_labels
from models.features.rows import Rows
from models.features.targets import present
from models.model import TrainedModel
from models.prediction.options import DEFAULT_SAMPLES, PredictOptions, ResolvedOptions
from models.prediction.threads import threads_for
from models.randomness import generator
from models.tabular.model import TabularModel


def expects_scores(model: TrainedModel) -> TypeGuard[TabularModel]:
    """Whether `simulate` takes the model: one of a table with one target."""
    return isinstance(model, TabularModel) and model.has_independent_rows


def simulate(
    model: TrainedModel,
    x: Float[Tensor, "rows inputs"],
    options: PredictOptions,
    truth: np.ndarray | None = None,
    first: int = 0,
) -> Simulated:
    """Scores of simulated labels of some rows, and of their labels where these are known.

    Args:
        truth: a target per row in the caller's units; NaN or None where it is unknown.
        first: the first row's number among all rows whose scores are summed.

    Raises:
        InvalidInput: for a model of another kind.
    """
    if not expects_scores(model):
        message = f"is for {model.task.replace('_', ' ')}: scores are expected of rows of a table"
        raise InvalidInput(message, "/model")
    options = model.resolve(options)
    known = np.zeros(len(x), bool) if truth is None else present(truth)
    encoded = model.target.encode(np.array([] if truth is None else truth[known]))
    targets = encoded.new_zeros(len(x))
    targets[torch.from_numpy(known)] = encoded
    rows = Rows(x, targets.to(x.device))
    mask = torch.from_numpy(known).to(x.device)
    parts = [drawn.sums(mask[part]) for drawn, part in _drawn(model, rows, options, first)]
    detector = model.detector(options.prune)
    if detector.score == SURPRISE:
        flags = detector.flags(model.surprises(x))
    else:
        flags = model.predict_rows(x, options).out_of_distribution
    return replace(Simulated.joined(parts), flagged=int(flags.sum()))


def promise(model: TabularModel, prune: float, held_out: Rows) -> Promise:
    """What rows that no weight was fitted to let expect of new ones."""
    options = model.resolve(PredictOptions(prune=prune, samples=DEFAULT_SAMPLES, intervals=()))
    return Promise.of([drawn.held_out() for drawn, _ in _drawn(model, held_out, options, "held")])


def _drawn(
    model: TabularModel, rows: Rows, options: ResolvedOptions, *purpose: str | int
) -> Iterator[tuple[Drawn, slice]]:
    """Chunks of rows with simulated labels, independent for each purpose, and their places."""
    fitted, seed, device = model.fitted(options.prune), options.seed, rows.inputs.device
    calibration = model.calibration_of(options.prune)
    with torch.inference_mode(), threads_for(fitted.operations * len(rows) * options.samples):
        for part in model.engine.labelled(fitted, rows, options.sampling):
            noise = generator(seed, "labels", *purpose, part.start, device=device)
            places = slice(part.start, part.start + len(part.targets))
            yield simulate_labels(part, calibration, noise), places


def informed(
    model: TrainedModel, x: Float[Tensor, "rows inputs"], options: PredictOptions
) -> Float[Tensor, "rows values draws"]:
    """What the label of each row would tell about the weights (`models.evaluation.acquisition`).

    Raises:
        InvalidInput: for a model that does not predict one target of rows.
    """
    if not isinstance(model, TabularModel):
        task = model.task.replace("_", " ")
        raise InvalidInput(model.no_labels or f"a {task} takes no labels of rows", "/model")
    answer = model.predict_rows(x, replace(options, return_draws=True))
    assert answer.draws is not None
    if model.classes is not None:
        return acquisition.of_classes(answer.draws)
    return acquisition.of_numbers(answer.draws, answer.variance["aleatoric"])
