"""The training problem of a text: lines to learn from, and the last lines, which are held out.

Its task are windows in order. Hidden states are passed on, without gradients. Per target token,
with N of them in the text and B in a window,

    loss = (1/B) Σ_t −log p(x_t | x_<t, w) + c KL(q‖P)/N,   w ~ q once

for the window. Windows are of equal size, so that the mean over an epoch of M = N/B windows is the
negative ELBO per token: the KL counts once (Fortunato et al. 2017, arXiv 1704.02798, eq. 3–5).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Generator
from torch.nn.functional import cross_entropy

from models.card import ColumnSummary, RowProfile
from models.config import ModelConfig, TrainingConfig
from models.config.training import required
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.features.targets import present
from models.fitting.distributed import ALONE, Ranks
from models.fitting.loop import Carried
from models.fitting.objectives import Loss, negative_elbo
from models.inference.method import Method
from models.inference.method_recipe import notes_on_objective
from models.language.model import BayesianLanguageModel, evaluate, stopping_score
from models.language.text import Corpus, Vocabulary
from models.language.text_recipe import MIN_LINES, NEEDED
from models.networks.sequences import LanguageModel
from models.randomness import derive_seed


@dataclass(frozen=True)
class TextTask:
    """Windows of a corpus, in order. Only a single process can fit to them.

    Args:
        corpus: of whole windows.
        steps: tokens of each stream in a window.
    """

    ranks: ClassVar[Ranks] = ALONE

    network: LanguageModel
    corpus: Corpus
    steps: int

    @property
    def device(self) -> torch.device:
        return self.corpus.streams.device

    @property
    def num_data(self) -> int:
        return self.corpus.num_targets

    def num_batches(self, config: TrainingConfig) -> int:
        return -(-self.corpus.num_steps // self.steps)

    def batches(self, config: TrainingConfig, epoch: int) -> Sequence[int]:
        """First steps of the windows."""
        return range(0, self.corpus.num_steps, self.steps)

    def loss(
        self,
        method: Method,
        state: Any,
        batch: int,
        *,
        kl_weight: float,
        noise: Generator,
        carried: Carried,
    ) -> tuple[Loss, Carried]:
        """The negative ELBO per token, estimated from one window."""
        tokens, targets = self.corpus.window(batch, self.steps)
        draw = method.draw(state, len(tokens), noise)
        logits, carried = method.products.advance(
            self.network.advance, draw.weights, tokens, carried or None, draw.masks
        )
        flat = logits.flatten(0, -2)
        members = flat.shape[0] // targets.numel()  # that are fitted in parallel
        nll = cross_entropy(flat, targets.flatten().repeat(members), reduction="none")
        nll = nll.view(members, -1).sum(0)
        return negative_elbo(nll, draw.penalty, self.num_data, kl_weight), carried


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

    def after_first(self, first: Callable[[], BayesianLanguageModel]) -> "TextProblem":
        return self

    def refit(self) -> "TextProblem":
        return self

    def score(self, state: Any) -> float:
        """Nats per token of the lines that choose the epoch."""
        return stopping_score(self.model.network, state, self.stopping)

    def measured(self, model: BayesianLanguageModel) -> BayesianLanguageModel:
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

    At least two lines are held out. The vocabulary is that of the training lines.

    Raises:
        InvalidData: if there are too few lines, or they hold too little to learn from.
    """
    values, training = columns[config.target], config.training
    lines = [str(line) for line in values[present(values)]]
    if len(lines) < MIN_LINES:
        raise InvalidData(f"{len(lines)} lines are too few: {NEEDED}", "/dataset")
    held_out = max(2, round(training.validation_fraction * len(lines)))
    start, middle = len(lines) - held_out, len(lines) - held_out + held_out // 2
    learned, stopping, scores = lines[:start], lines[start:middle], lines[middle:]
    where = (
        f"held out: the last {held_out} of {len(lines)} lines, of which the first {len(stopping)} "
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
    steps = required(required(config.language, "language").steps, "language.steps")
    learning = model.corpus(learned, required(training.batch_size, "batch_size"))
    task = TextTask(model.network, learning.whole_windows(steps).to(device), steps)
    choosing = model.corpus(stopping, _HELD_OUT_STREAMS).to(device)
    return TextProblem(model, task, choosing, scores, profile)
