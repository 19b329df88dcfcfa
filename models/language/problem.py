"""The training problem of a text: lines to learn from, and the last lines, which are held out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from models.config import ModelConfig
from models.features.columns import Columns
from models.features.splits import split_rows
from models.features.targets import present
from models.language.corpus import Corpus
from models.language.evaluation import evaluate, score
from models.language.model import BayesianLanguageModel
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


def text_problem(columns: Columns, config: ModelConfig, device: str) -> TextProblem:
    """Build the problem: half of the held-out lines choose the epoch, the others are scored.

    A single held-out line does both. The vocabulary is that of the training lines.

    Raises:
        InvalidData: if the lines hold too little to learn from.
    """
    values, training = columns[config.target], config.training
    lines = [str(line) for line in values[present(values)]]
    kept, last = split_rows(
        training.split, training.validation_fraction, training.seed, len(lines), None
    )
    several = len(last) > 1
    first, second = (last[: len(last) // 2], last[len(last) // 2 :]) if several else (last, last)
    learned, stopping, scores = ([lines[i] for i in index] for index in (kept, first, second))
    where = f"held out: the last {len(last)} of {len(lines)} lines"
    if several:
        where += f", of which the first {len(first)} chose the epoch and the others were scored"
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
        stopping=len(stopping) if several else 0,
        calibration=0,
        held_out=len(scores),
        columns=(text,),
    )
    corpus = model.corpus(stopping, _HELD_OUT_STREAMS).to(device)
    return TextProblem(model, _text_task(model, learned, device), corpus, scores, profile)


def _text_task(model: BayesianLanguageModel, learned: Sequence[str], device: str) -> TextTask:
    steps = required(required(model.config.language, "language").steps, "language.steps")
    streams = required(model.config.training.batch_size, "batch_size")
    corpus = model.corpus(learned, streams).whole_windows(steps).to(device)
    return TextTask(model.network, corpus, steps)
