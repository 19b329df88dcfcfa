"""The training problem of a text: lines to learn from, and the last lines, which are held out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.config import Json, ModelConfig, TrainingConfig
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.features.targets import present
from models.language.corpus import Corpus
from models.language.evaluation import evaluate, score
from models.language.model import BayesianLanguageModel
from models.language.recipe import MIN_LINES, NEEDED
from models.language.task import TextTask
from models.language.vocabulary import Vocabulary
from models.randomness import derive_seed
from models.tabular.preparation import notes_on_objective
from models.training.row_profile import ColumnSummary, RowProfile
from models.training.trainer import required

_HELD_OUT_STREAMS = 10


@dataclass(frozen=True)
class TextProblem:
    """A model without posteriors, the lines it learns from and those held out.

    `stopping` are the lines that choose the learning rate and the epoch.
    """

    model: BayesianLanguageModel
    task: TextTask
    stopping: Corpus
    scores: Sequence[str]
    profile: RowProfile

    @property
    def chooses(self) -> bool:
        return True

    def refit(self) -> "TextProblem":
        return self

    def score(self, state: Any) -> float:
        """Nats per token of the lines that choose the epoch."""
        return score(self.model.network, state, self.stopping)

    def finish(self, model: Any) -> BayesianLanguageModel:
        """The model with metrics of every variant on the scored lines."""
        held_out = self.model.corpus(self.scores, _HELD_OUT_STREAMS).to(self.task.device)
        scored = {}
        for fraction, variant in model.variants_by_prune.items():
            metrics = evaluate(model.network, variant.state, held_out, model.default_seed)
            whole = {"rows": len(self.scores), **metrics, **variant.metrics}
            scored[fraction] = replace(variant, metrics=whole)
        return replace(model, variants_by_prune=scored)

    def importance(self, model: Any) -> Json:
        """Nothing: texts have no features."""
        return {}

    def held_out(self, model: Any) -> Json:
        """Nothing: a text has no single true value."""
        return {}


def text_problem(columns: Columns, config: ModelConfig, device: str) -> TextProblem:
    """Build the problem: half of the held-out lines choose the epoch, the others are scored.

    At least two lines are held out. The vocabulary is that of the training lines.

    Raises:
        InvalidData: if there are too few lines, or they hold too little to learn from.
    """
    values, training = columns[config.target], config.training
    lines = [str(line) for line in values[present(values)]]
    kept, first, second = _divide(training, len(lines))
    learned, stopping, scores = ([lines[i] for i in index] for index in (kept, first, second))
    held_out = len(first) + len(second)
    where = (
        f"held out: the last {held_out} of {len(lines)} lines, of which the first {len(first)} "
        "chose the epoch and the others were scored"
    )
    model = BayesianLanguageModel(
        config=config,
        vocabulary=Vocabulary.fit(learned, required(config.language, "language")),
        variants_by_prune={},
        default_seed=derive_seed(training.seed, "prediction") % 2**31,
        notes=(where, *notes_on_objective(config.method)),
    )
    text = ColumnSummary(
        name=config.target, role="target", type="text", missing=len(values) - len(lines)
    )
    profile = RowProfile(
        learned=len(learned),
        stopping=len(stopping),
        calibration=0,
        held_out=len(scores),
        columns=(text,),
    )
    corpus = model.corpus(stopping, _HELD_OUT_STREAMS).to(device)
    return TextProblem(model, _text_task(model, learned, device), corpus, scores, profile)


def _divide(training: TrainingConfig, num_lines: int) -> tuple[np.ndarray, ...]:
    """The lines to learn from, those that choose the epoch and those that are scored."""
    if num_lines < MIN_LINES:
        raise InvalidData(f"{num_lines} lines are too few: {NEEDED}", "/dataset")
    held_out = max(2, round(training.validation_fraction * num_lines))
    lines = np.arange(num_lines)
    return tuple(np.split(lines, [num_lines - held_out, num_lines - held_out + held_out // 2]))


def _text_task(model: BayesianLanguageModel, learned: Sequence[str], device: str) -> TextTask:
    steps = required(required(model.config.language, "language").steps, "language.steps")
    streams = required(model.config.training.batch_size, "batch_size")
    corpus = model.corpus(learned, streams).whole_windows(steps).to(device)
    return TextTask(model.network, corpus, steps)
